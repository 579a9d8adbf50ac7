#include "tests/sim/access_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace verbena::sim_tests {

window_model::window_model(const window& what, std::uint32_t number, std::size_t ranks)
    : what_(what), memory_(ranks), additions_(ranks), swaps_(ranks), doubted_(ranks), number_(number) {
  for (std::size_t r = 0; r < ranks; ++r) {
    memory_[r].resize(bytes());
    for (std::size_t i = window::words; i < bytes(); ++i) memory_[r][i] = byte_of(mixed(number, r, 0x3e3), i);
  }
}

std::vector<std::byte> window_model::put(std::int32_t target, std::size_t offset, std::size_t size) {
  std::vector<std::byte> data(size);
  const std::uint64_t name = mixed(number_, ++puts_, 0x9a7);
  for (std::size_t i = 0; i < size; ++i) data[i] = byte_of(name, i);
  std::copy(data.begin(), data.end(),
            memory_[static_cast<std::size_t>(target)].begin() + static_cast<std::ptrdiff_t>(offset));
  return data;
}

void window_model::added(std::int32_t target, std::uint64_t value, std::uint64_t old) {
  additions_[static_cast<std::size_t>(target)].push_back({value, old});
}

std::uint64_t window_model::guess(std::int32_t target, std::uint32_t pick) const {
  const auto& swaps = swaps_[static_cast<std::size_t>(target)];
  if (swaps.empty()) return 0;
  const swap& seen = swaps[pick % 3 == 0 ? pick % swaps.size() : swaps.size() - 1];
  return seen.old == seen.expected ? seen.desired : seen.old;
}

void window_model::swapped(std::int32_t target, std::uint64_t expected, std::uint64_t desired,
                           std::uint64_t old) {
  swaps_[static_cast<std::size_t>(target)].push_back({expected, desired, old});
}

std::string window_model::judge_words(std::int32_t target, std::uint64_t sum, std::uint64_t last) const {
  auto additions = additions_[static_cast<std::size_t>(target)];
  // All values are positive, so the order of what was found is the order in which they were added.
  std::sort(additions.begin(), additions.end(),
            [](const addition& a, const addition& b) { return a.old < b.old; });
  std::uint64_t so_far = 0;
  for (const addition& a : additions) {
    if (a.old != so_far) return fmt::format("a fetch_add found {}, no order of all of them gives it", a.old);
    so_far += a.value;
  }
  if (so_far != sum) return fmt::format("the sum of all fetch_adds is {}, the word {}", so_far, sum);

  // Each value is brought once, so those that changed the word form one chain from 0 to what is there.
  std::map<std::uint64_t, std::uint64_t> next;
  for (const swap& s : swaps_[static_cast<std::size_t>(target)])
    if (s.old == s.expected && !next.emplace(s.old, s.desired).second)
      return fmt::format("two compare_swaps replaced the value {}", s.old);
  std::set<std::uint64_t> held{0};
  std::uint64_t at = 0;
  for (auto to = next.find(at); to != next.end(); to = next.find(at)) {
    at = to->second;
    held.insert(at);
    next.erase(to);
  }
  if (!next.empty())
    return fmt::format("a compare_swap replaced the value {}, which the word never held",
                       next.begin()->first);
  if (at != last) return fmt::format("the last compare_swap left {}, the word is {}", at, last);
  for (const swap& s : swaps_[static_cast<std::size_t>(target)])
    if (held.count(s.old) == 0)
      return fmt::format("a compare_swap found {}, which the word never held", s.old);
  return {};
}

}  // namespace verbena::sim_tests
