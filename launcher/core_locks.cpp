#include "launcher/core_locks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace verbena::launcher {
namespace {

// Far from the beginning, where whoever else locks bytes of that file would.
constexpr off_t origin = off_t{0x766562} << 24;

struct flock range(unsigned begin, unsigned end, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = origin + begin;
  lock.l_len = end - begin;
  return lock;
}

/// The runs of consecutive numbers in an ascending list, as half-open ranges.
std::vector<std::pair<unsigned, unsigned>> runs(const std::vector<unsigned>& cpus) {
  std::vector<std::pair<unsigned, unsigned>> all;
  for (const unsigned cpu : cpus) {
    if (!all.empty() && all.back().second == cpu)
      ++all.back().second;
    else
      all.emplace_back(cpu, cpu + 1);
  }
  return all;
}

}  // namespace

core_locks::core_locks(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}

bool core_locks::lock(unsigned begin, unsigned end, short type) const {
  struct flock wanted = range(begin, end, type);
  return ::fcntl(file_.get(), F_OFD_SETLK, &wanted) == 0;
}

void core_locks::find(unsigned begin, unsigned end, std::vector<unsigned>& found, bool& known) const {
  if (begin >= end || !known) return;
  struct flock other = range(begin, end, F_WRLCK);
  if (::fcntl(file_.get(), F_OFD_GETLK, &other) != 0) {
    known = false;
    return;
  }
  if (other.l_type == F_UNLCK) return;
  // Any one of the conflicting locks is reported, not the first: look on both sides of it. It may reach
  // beyond what was asked for (a length of 0: to the end of all files).
  const off_t first = std::max(other.l_start, origin + begin);
  const off_t last = other.l_len == 0 ? origin + end : std::min(other.l_start + other.l_len, origin + end);
  const auto from = static_cast<unsigned>(first - origin), to = static_cast<unsigned>(last - origin);
  for (unsigned cpu = from; cpu < to; ++cpu) found.push_back(cpu);
  find(begin, from, found, known);
  find(to, end, found, known);
}

std::optional<std::vector<unsigned>> core_locks::held_by_others(const std::vector<unsigned>& cpus) const {
  bool known = static_cast<bool>(file_);
  std::vector<unsigned> found;
  for (const auto& [begin, end] : runs(cpus)) find(begin, end, found, known);
  std::sort(found.begin(), found.end());
  if (!known) return std::nullopt;
  return found;
}

bool core_locks::take(const std::vector<unsigned>& cpus) const {
  const auto all = runs(cpus);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (lock(all[i].first, all[i].second, F_WRLCK)) continue;
    while (i-- > 0) lock(all[i].first, all[i].second, F_UNLCK);
    return false;
  }
  return true;
}

}  // namespace verbena::launcher
