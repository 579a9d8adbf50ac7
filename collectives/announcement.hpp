// What a member says of each collective call it begins, so that calls that do not fit together are noticed
// and not waited for for ever: on a node each has a few words in its head of the block (node_block.hpp), used
// in turn, one per call. A word holds the low bits of the call's number, so a reader knows whether it speaks
// of the same call.
//
// It tells which call, how many bytes, and a digest of operator, element type and root.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbena::collectives {

class communicator_state;

enum class call_kind : std::uint8_t {
  none,
  barrier,
  broadcast,
  reduce,
  allreduce,
  gather,
  scatter,
  allgather,
  alltoall,
  communicators,  ///< dup, split, create
};
std::string_view name(call_kind what) noexcept;

// 16 bits number | 4 bits kind | 8 bits digest | 36 bits size
inline constexpr std::uint64_t announced_sizes = (std::uint64_t{1} << 36) - 1;
inline constexpr unsigned announced_words = 4;

/// Without the number.
constexpr std::uint64_t likeness_of(call_kind what, std::size_t bytes, unsigned digest) noexcept {
  return static_cast<std::uint64_t>(what) << 44 | static_cast<std::uint64_t>(digest & 0xff) << 36 |
         (bytes & announced_sizes);
}
constexpr std::uint64_t announcement_of(std::uint64_t number, std::uint64_t likeness) noexcept {
  return number << 48 | likeness;
}
constexpr call_kind kind_in(std::uint64_t word) noexcept {
  return static_cast<call_kind>(word >> 44 & 0xf);
}
constexpr std::uint64_t bytes_in(std::uint64_t word) noexcept {
  return word & announced_sizes;
}

/// Looks, when a wait has become long, whether some member has begun the same call otherwise. At most once in
/// a millisecond, so that it can stand in any loop. The first `patience` looks do nothing; they must be fewer
/// than a waiter takes before it sleeps, since a sleeper looks twice a second.
class announcement_watch {
 public:
  /// With progress in between (runtime/waiter.hpp takes 64 looks at once), and at words alone (node_wait.hpp:
  /// 400 and 64).
  static constexpr unsigned short_patience = 60;
  static constexpr unsigned long_patience = 450;

  explicit announcement_watch(communicator_state& home) noexcept : home_(home) {}
  void begin(std::uint64_t number, std::uint64_t likeness) noexcept {
    number_ = number;
    likeness_ = likeness;
    looks_ = 0;
    found_ = -1;
    next_ = 0;
  }
  /// The member, or -1. Once found it stays found: waits look again when they end.
  int look(unsigned patience) noexcept {
    if (++looks_ < patience) [[likely]]
      return -1;
    return look_at_all();
  }

 private:
  int look_at_all() noexcept;

  communicator_state& home_;
  std::uint64_t number_ = 0, likeness_ = 0;
  unsigned looks_ = 0;
  int found_ = -1;
  base::nanoseconds next_ = 0;
};

}  // namespace verbena::collectives
