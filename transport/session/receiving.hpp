// The receiving half of a session: which packet is due next, what to do with any other, and when the peer must
// be told. Answers ride on packets that go the other way; a bare one is due only when none has gone for a
// while, or when something is wrong. It keeps no packet: one that comes early is its customer's to keep and
// offer again, or to drop and have sent again.
#pragma once

#include "base/clock.hpp"
#include "transport/session/header.hpp"

#include <cstdint>

namespace verbena::transport::session {

enum class verdict : std::uint8_t {
  accepted,   ///< the next one: report it, now
  duplicate,  ///< was accepted before: drop it
  early,      ///< one before it is missing: drop it, or keep it and offer it again once that has come
  stale,      ///< of a connection that is no more: drop it, nothing in it counts
  malformed,  ///< no peer that keeps the protocol sends this: give the connection up
};

struct answering {
  std::uint32_t after_packets = 16;                   ///< owed so many: a bare answer is due
  base::nanoseconds after = 100 * base::microsecond;  ///< owed for so long: the same
};

class receiving {
 public:
  receiving(answering when, std::uint32_t peer_window, bool ordered) noexcept
      : when_(when), window_(peer_window), ordered_(ordered) {}

  verdict take(std::uint32_t sequence, base::nanoseconds now) noexcept {
    const std::uint32_t ahead = sequence - expected_;
    if (ahead != 0) [[unlikely]]
      return out_of_turn(sequence, ahead);
    if (hole_ && newest_ == sequence) hole_ = false;
    expected_ = next(expected_);
    if (owed_++ == 0) owed_since_ = now;
    return verdict::accepted;
  }

  /// What a packet the other way, or a bare answer, says of what has arrived; once it is sent, `told`.
  std::uint32_t acknowledges() const noexcept { return expected_ - 1; }
  void told() noexcept {
    owed_ = 0;
    pressing_ = false;
  }
  session::bare_answer answer() noexcept {
    told();
    return {acknowledges(), hole_ ? newest_ : acknowledges()};
  }

  /// When a bare answer is due if nothing goes the other way before; `never`: nothing is owed.
  base::nanoseconds answer_due() const noexcept {
    if (pressing_ || owed_ >= when_.after_packets) return 0;
    return owed_ == 0 ? base::never : owed_since_ + when_.after;
  }

  std::uint32_t expected() const noexcept { return expected_; }
  /// Before the first packet: where the numbers start, if not at 1.
  void start_at(std::uint32_t sequence) noexcept { expected_ = sequence; }
  /// A new connection: what was early on the old one comes again.
  void forget_early() noexcept { hole_ = false; }

 private:
  verdict out_of_turn(std::uint32_t sequence, std::uint32_t ahead) noexcept {
    if (sequence == 0) return verdict::malformed;
    if (ahead >= 1U << 31) {
      pressing_ = true;  // its sender may not know that it has arrived
      return verdict::duplicate;
    }
    if (ordered_ || ahead > window_) return verdict::malformed;
    // A hole is told of once, at the first packet behind it: not once for each.
    if (!hole_) pressing_ = true;
    if (!hole_ || distance(newest_, sequence) > 0) newest_ = sequence;
    hole_ = true;
    return verdict::early;
  }

  answering when_;
  std::uint32_t window_;
  bool ordered_;
  bool pressing_ = false;  ///< a bare answer is due at once
  bool hole_ = false;      ///< something early was seen, and newest_ is its number
  std::uint32_t expected_ = 1;
  std::uint32_t newest_ = 0;
  std::uint32_t owed_ = 0;
  base::nanoseconds owed_since_ = 0;
};

}  // namespace verbena::transport::session
