#include "base/cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace verbena::base {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

/// "50000 100000" or "max 100000" (v2).
std::optional<double> quota_v2(const std::string& folder) {
  std::istringstream line{read_line(folder + "/cpu.max")};
  double quota = 0, period = 0;
  if (!(line >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

/// -1 for none (v1).
std::optional<double> quota_v1(const std::string& folder) {
  const double quota = std::atof(read_line(folder + "/cpu.cfs_quota_us").c_str());
  const double period = std::atof(read_line(folder + "/cpu.cfs_period_us").c_str());
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

/// The smallest quota from the group up to the root of its hierarchy. In a container the path may be the
/// host's and not exist here; then its last steps up, to the mounted root, are what can be seen.
template <class Read>
std::optional<double> smallest(const std::string& mount, std::string group, const Read& read) {
  std::optional<double> least;
  while (true) {
    const std::optional<double> here = read(mount + group);
    if (here && (!least || *here < *least)) least = here;
    if (group.empty() || group == "/") return least;
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

/// The kernel refuses a set smaller than its own, so it grows until it fits.
template <class Use>
void with_mask(const Use& use) {
  for (std::size_t count = 1024; count <= 1U << 20; count *= 2) {
    cpu_set_t* mask = CPU_ALLOC(count);
    if (mask == nullptr) return;
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    const bool known = ::sched_getaffinity(0, bytes, mask) == 0;
    const int refused = errno;
    if (known) use(mask, bytes);
    CPU_FREE(mask);
    if (known || refused != EINVAL) return;
  }
}

}  // namespace

std::vector<unsigned> mask_cpus() {
  std::vector<unsigned> found;
  with_mask([&found](const cpu_set_t* mask, std::size_t bytes) {
    for (unsigned cpu = 0; cpu < bytes * 8; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, mask)) found.push_back(cpu);
  });
  return found;
}

unsigned mask_cores() noexcept {
  int cores = 0;
  with_mask([&cores](const cpu_set_t* mask, std::size_t bytes) { cores = CPU_COUNT_S(bytes, mask); });
  return static_cast<unsigned>(std::max(1, cores));
}

std::optional<double> cpu_quota(std::string_view proc_cgroup, const std::string& root) {
  std::optional<double> least;
  const auto take = [&least](std::optional<double> found) {
    if (found && (!least || *found < *least)) least = found;
  };
  std::istringstream lines{std::string{proc_cgroup}};
  for (std::string line; std::getline(lines, line);) {
    // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      take(smallest(root, group, quota_v2));
      take(smallest(root + "/unified", group, quota_v2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      take(smallest(root + "/cpu", group, quota_v1));
      if (controllers != ",cpu,")
        take(smallest(root + "/" + controllers.substr(1, controllers.size() - 2), group, quota_v1));
    }
  }
  return least;
}

std::optional<double> cpu_quota() {
  std::ifstream file{"/proc/self/cgroup"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return cpu_quota(text, "/sys/fs/cgroup");
}

unsigned usable_cores() {
  return usable_cores(mask_cores(), cpu_quota());
}

unsigned usable_cores(unsigned mask, std::optional<double> quota) {
  if (!quota || *quota >= mask) return mask;
  return std::max(1U, static_cast<unsigned>(std::ceil(*quota)));
}

}  // namespace verbena::base
