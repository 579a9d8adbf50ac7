// How much eager data may lie at a receiver that has not asked for it. One budget per direction of a pair of
// ranks:
//
//   sender     counts what it sends eagerly (charge) against what is left; when that does not cover a
//   message, the data
//              stays here and only the envelope goes. Nobody is asked: one subtraction per message.
//   receiver   counts what is out of the way again, taken from the ring directly or parked first, and reports
//   the running
//              sum once half of a budget has gathered: a warm pair exchanges less than one report per
//              budget's half.
//
// What arrives is not believed: a report of more than was sent is refused, and a sender that ignores its
// budget finds its messages refused beyond a hard limit. Pure arithmetic; it must not know messages or peers.
#pragma once

#include "runtime/engine/protocol.hpp"

#include <cstddef>
#include <cstdint>

namespace verbena::runtime {

/// What a waiting message costs a receiver besides its data: header, place in the matcher, block.
inline constexpr std::size_t message_overhead = 256;

constexpr std::uint64_t charge_of(std::size_t bytes) noexcept {
  return bytes + message_overhead;
}

/// The sender's half.
struct send_budget {
  std::uint64_t left = 0;      ///< may be sent now
  std::uint64_t released = 0;  ///< as last reported by the receiver

  bool covers(std::size_t bytes) const noexcept { return charge_of(bytes) <= left; }
  void spend(std::size_t bytes) noexcept { left -= charge_of(bytes); }
  /// Takes a report. False: no honest receiver gives it; nothing changed.
  bool report(std::uint64_t total, std::uint64_t budget) noexcept {
    if (total < released || total - released > budget - left) return false;
    left += total - released;
    released = total;
    return true;
  }
};

/// The receiver's half.
struct receive_budget {
  std::uint64_t parked = 0;    ///< charge of what lies here now
  std::uint64_t released = 0;  ///< charge of all that is out of the way
  std::uint64_t reported = 0;  ///< of that, what the sender was told

  std::uint64_t owed() const noexcept { return released - reported; }
};

/// Reports are due when so much has gathered.
constexpr std::uint64_t report_step(std::uint64_t budget) noexcept {
  return budget / 2 > 0 ? budget / 2 : 1;
}
/// A peer's messages beyond this are refused: twice what it may leave here, and one message that was cut in
/// pieces.
constexpr std::uint64_t hard_limit(std::uint64_t budget) noexcept {
  return 2 * budget + largest_eager;
}

}  // namespace verbena::runtime
