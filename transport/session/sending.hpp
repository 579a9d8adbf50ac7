// The sending half of a session: numbers, what is retained, how far the peer has acknowledged, and what has to
// go out again: after a hole or a time-out the packets (the link loses), after a new connection everything that
// has no end yet (the link was cut). It moves nothing itself: `again` hands the customer one entry after the
// other, as fast as the customer takes them.
#pragma once

#include "base/clock.hpp"
#include "transport/session/header.hpp"
#include "transport/session/retained.hpp"

#include <verbena/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace verbena::transport::session {

struct repeating {
  base::nanoseconds after = 0;  ///< without an answer; 0: never, the link does not lose
  std::uint32_t most_doublings = 6;
  std::uint32_t give_up = 0;  ///< after so many time-outs without progress; 0: never
};

class sending {
 public:
  sending(std::uint32_t most_retained, repeating when) noexcept : retained_(most_retained), when_(when) {}

  bool room() const noexcept { return !retained_.full(); }
  /// Nothing has to go out again before what is new.
  bool caught_up() const noexcept { return next_ == retained_.tail(); }
  bool all_acknowledged() const noexcept { return sent_ == acknowledged_; }
  bool nothing_retained() const noexcept { return retained_.empty(); }
  std::uint32_t last_sent() const noexcept { return sent_; }
  std::uint32_t acknowledged() const noexcept { return acknowledged_; }

  /// A new packet; its number. There is room, all is caught up, and the customer sends it now.
  std::uint32_t post_packet(std::uint64_t cookie, base::nanoseconds now) {
    if (sent_ == acknowledged_) waiting_since_ = now;
    sent_ = next(sent_);
    next_ = retained_.append({cookie, sent_, kind::packet}) + 1;
    return sent_;
  }
  /// A new one-sided operation; its position, for `ended`.
  std::uint64_t post_one_sided(kind what, std::uint64_t cookie) {
    const std::uint64_t position = retained_.append({cookie, sent_, what});
    next_ = position + 1;
    return position;
  }
  void ended(std::uint64_t position) noexcept { retained_.finish(position); }
  void renamed(std::uint64_t position, std::uint64_t cookie) noexcept { retained_[position].cookie = cookie; }

  /// Everything up to `acknowledged` has arrived: `release(cookie)` for each packet that no longer must be kept.
  /// False: no such packet was ever sent.
  template <class Release>
  bool acknowledge(std::uint32_t acknowledged, base::nanoseconds now, Release&& release) {
    if (acknowledged == 0) [[unlikely]]
      acknowledged = before(1);
    const std::uint32_t fresh = acknowledged - acknowledged_;
    if (fresh == 0) return true;
    if (fresh > sent_ - acknowledged_) return fresh >= 1U << 31;  // an old one, overtaken; or a lie
    acknowledged_ = acknowledged;
    waiting_since_ = now;
    timeouts_ = 0;
    if (recovering_ && distance(recovered_at_, acknowledged) >= 0) recovering_ = false;
    // Operations that ended before any packet may have taken the head along.
    for (std::uint64_t position = std::max(unacknowledged_, retained_.head());; ++position) {
      const entry e = retained_[position];
      if (e.what != kind::packet) continue;
      retained_.finish(position);
      release(e.cookie);
      if (e.sequence != acknowledged) continue;
      last_arrived_ = position;
      unacknowledged_ = position + 1;
      return true;
    }
  }

  /// The peer says that it lacks something behind `acknowledged` and has seen later ones.
  void hole_told() noexcept {
    // One rewind answers all that was under way then; if what it sends is lost again, the clock tells.
    if (when_.after == 0 || all_acknowledged() || recovering_) return;
    rewind();
  }

  /// When to look at the clock again; `never`: not before something else happens.
  base::nanoseconds repeat_due() const noexcept {
    if (when_.after == 0 || all_acknowledged()) return base::never;
    return waiting_since_ +
           (when_.after << (timeouts_ < when_.most_doublings ? timeouts_ : when_.most_doublings));
  }
  /// False: given up, the peer does not answer.
  bool look_at_clock(base::nanoseconds now) noexcept {
    if (now < repeat_due()) return true;
    if (when_.give_up != 0 && timeouts_ >= when_.give_up) return false;
    ++timeouts_;
    waiting_since_ = now;
    rewind();
    return true;
  }

  /// A new connection: the peer has everything before `expected`. `end(cookie, kind, error)` for each operation that
  /// ends by that, in order; the rest goes out again. False: the peer cannot have that.
  template <class Release, class End>
  bool resume(std::uint32_t expected, base::nanoseconds now, Release&& release, End&& end) {
    if (expected == 0 || before(expected) - acknowledged_ > sent_ - acknowledged_) return false;
    acknowledge(before(expected), now, release);
    // Whatever lies before a packet that has arrived was carried out: links keep that order.
    for (std::uint64_t i = retained_.head(); i != retained_.tail(); ++i) {
      const entry e = retained_[i];
      const bool carried_out = i < last_arrived_;
      if (e.what == kind::atomic || e.what == kind::flag || (e.what == kind::put && carried_out)) {
        retained_.finish(i);
        end(e.cookie, e.what, e.what == kind::atomic || !carried_out ? errc::outcome_unknown : errc::success);
      }
    }
    waiting_since_ = now;
    timeouts_ = 0;
    next_ = retained_.head();
    replay_until_ = retained_.tail();
    return true;
  }

  /// What has to go out again, oldest first, as long as `transmit(entry)` takes it. The number taken.
  template <class Transmit>
  std::size_t again(Transmit&& transmit) {
    std::size_t taken = 0;
    for (; next_ != retained_.tail(); ++next_) {
      const entry e = retained_[next_];
      if (e.what == kind::finished || (e.what != kind::packet && next_ >= replay_until_)) continue;
      if (!transmit(e)) break;
      ++taken;
    }
    if (next_ >= replay_until_) replay_until_ = 0;
    return taken;
  }

  /// Everything that is retained, for whoever gives the session up. The callee may not post.
  template <class Take>
  void abandon(Take&& take) {
    for (std::uint64_t i = retained_.head(); i != retained_.tail(); ++i) {
      const entry e = retained_[i];
      retained_.finish(i);
      if (e.what != kind::finished) take(e);
    }
    next_ = retained_.tail();
    unacknowledged_ = retained_.tail();
    acknowledged_ = sent_;
  }

  /// Before the first packet: which number it gets, if not 1.
  void start_at(std::uint32_t sequence) noexcept { sent_ = acknowledged_ = before(sequence); }

 private:
  void rewind() noexcept {
    if (next_ < replay_until_) return;  // a replay is under way and does the same
    next_ = std::max(unacknowledged_, retained_.head());
    replay_until_ = 0;
    recovering_ = true;
    recovered_at_ = sent_;
  }

  retained retained_;
  repeating when_;
  std::uint32_t sent_ = before(1);
  std::uint32_t acknowledged_ = before(1);
  std::uint64_t next_ = 0;            ///< position of what goes out next; the tail: nothing does
  std::uint64_t unacknowledged_ = 0;  ///< no packet before it is unacknowledged
  std::uint64_t last_arrived_ = 0;    ///< position of the last packet known to have arrived
  std::uint64_t replay_until_ = 0;    ///< before it, one-sided operations go out again as well
  bool recovering_ = false;           ///< was rewound, and not all of that has arrived yet
  std::uint32_t recovered_at_ = 0;    ///< the last packet sent when it was rewound
  std::uint32_t timeouts_ = 0;        ///< since the last progress
  base::nanoseconds waiting_since_ = 0;
};

}  // namespace verbena::transport::session
