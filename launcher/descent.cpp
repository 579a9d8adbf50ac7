#include "launcher/descent.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

namespace verbena::launcher {
namespace {

/// What /proc/PID/stat says after the name, which ends with the last parenthesis.
struct kinship {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
};

kinship kinship_of(pid_t pid) {
  kinship found;
  const int fd = ::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return found;
  char text[512];
  const long count = ::read(fd, text, sizeof text);
  ::close(fd);
  if (count <= 0) return found;
  const std::string_view line{text, static_cast<std::size_t>(count)};
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 4 >= line.size()) return found;
  found.state = line[name_end + 2];
  const char* const end = line.data() + line.size();
  const char* const rest = std::from_chars(line.data() + name_end + 4, end, found.parent).ptr;
  if (rest < end) std::from_chars(rest + 1, end, found.group);
  return found;
}

template <class Visit>
void for_each_process(const Visit& visit) {
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr == end && pid > 0) visit(pid);
  }
  ::closedir(directory);
}

}  // namespace

std::vector<pid_t> find_descent(pid_t ancestor, std::span<const pid_t> spared) {
  std::vector<std::pair<pid_t, pid_t>> parents;  // parent, process
  for_each_process([&](pid_t pid) { parents.emplace_back(kinship_of(pid).parent, pid); });
  std::sort(parents.begin(), parents.end());
  std::vector<pid_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto child = std::lower_bound(parents.begin(), parents.end(), std::pair<pid_t, pid_t>{found[i], 0});
    for (; child != parents.end() && child->first == found[i]; ++child)
      if (std::find(spared.begin(), spared.end(), child->second) == spared.end()) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> stopped_groups() {
  std::vector<pid_t> groups;
  for_each_process([&](pid_t pid) {
    const kinship its = kinship_of(pid);
    if (its.state == 'T') groups.push_back(its.group);
  });
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

bool kill_descent(std::span<const pid_t> spared) {
  const std::vector<pid_t> descent = find_descent(::getpid(), spared);
  // Stopped first, parents before children: what forks while it is being killed would never end.
  for (const pid_t pid : descent) ::kill(pid, SIGSTOP);
  for (const pid_t pid : descent) ::kill(pid, SIGKILL);
  return !descent.empty();
}

}  // namespace verbena::launcher
