// Small words for writing schedules: each call appends one step and returns its index, for `after`.
#pragma once

#include "collectives/schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace verbena::collectives {

struct range {
  std::uint32_t first = 0;
  std::uint32_t chunks = 0;
};

/// In lists of blocks only the number of chunks counts.
constexpr range blocks(int count) {
  return {0, static_cast<std::uint32_t>(count)};
}

constexpr piece input_at(std::uint32_t at) {
  return {place::input, -1, at};
}
constexpr piece output_at(std::uint32_t at) {
  return {place::output, -1, at};
}
constexpr piece scratch_at(std::uint32_t cell) {
  return {place::scratch, -1, cell};
}
constexpr piece node_at(int member, std::uint32_t at) {
  return {place::node, member, at};
}

constexpr piece input_block(int of) {
  return input_at(static_cast<std::uint32_t>(of));
}
constexpr piece output_block(int of) {
  return output_at(static_cast<std::uint32_t>(of));
}
constexpr piece scratch_block(int cell) {
  return scratch_at(static_cast<std::uint32_t>(cell));
}
constexpr piece node_block_of(int member, int cell) {
  return node_at(member, static_cast<std::uint32_t>(cell));
}

class builder {
 public:
  using index = std::uint32_t;
  using befores = std::initializer_list<index>;

  explicit builder(schedule& into) : into_(into) {}

  index send(int peer, range data, piece from, befores after = {}) {
    return add({.what = action::send, .peer = peer, .left = from}, data, after);
  }
  index receive(int peer, range data, piece to, befores after = {}) {
    return add({.what = action::receive, .peer = peer, .to = to}, data, after);
  }
  index copy(range data, piece from, piece to, befores after = {}) {
    return add({.what = action::copy, .left = from, .to = to}, data, after);
  }
  index reduce(range data, piece left, piece right, piece to, befores after = {}) {
    return add({.what = action::reduce, .left = left, .right = right, .to = to}, data, after);
  }
  /// Waits for started steps, and does nothing else.
  index wait(befores after) { return add({.what = action::copy}, {}, after); }
  index publish() {
    ++into_.publishes;
    return add({.what = action::publish}, {}, {});
  }
  index await(int member, std::uint16_t count) {
    return add({.what = action::await, .count = count, .peer = member}, {}, {});
  }
  index arrive() { return add({.what = action::arrive}, {}, {}); }
  index arrive_combine(range data) { return add({.what = action::arrive_combine}, data, {}); }
  index wait_release() { return add({.what = action::wait_release}, {}, {}); }

 private:
  index add(step s, range data, befores after) {
    s.first = data.first;
    s.chunks = data.chunks;
    std::size_t slot = 0;
    for (index before : after)
      if (before != no_step) s.after.at(slot++) = before;
    into_.steps.push_back(s);
    return static_cast<index>(into_.steps.size() - 1);
  }
  schedule& into_;
};

}  // namespace verbena::collectives
