// How two ranks agree about a connection that is made anew: a state machine, one per link. It never touches a clock, a
// queue pair or a datagram: time and letters are arguments, and what is to be done is the answer. It must not know how any
// of that is done.
//
//            break_off               drained                connected(yes)
//   (up) --------------> draining ------------> asking ------------------------> listening
//    ^                      ^                     | (the peer's letter is here)      |  |
//    |                      +---------------------|------- a newer letter -----------+  |
//    +--------------------------------------------+--- it listens, or it sends ---------+
//
//   draining    stopped; what had arrived or had been carried out is still told
//   asking      nothing comes any more, so what is told is final              writes `broken`
//   listening   the peer's letter is here, the new connection is made here    writes `listens`
//   up          the peer listens, or sends: what it lacks goes out again      answers `listens` by `up`
//
// A connection has a number, its incarnation, that grows; letters about an older one mean nothing, one about a newer one
// means that this one broke, too. Letters that are lost, late or doubled change nothing but the time it takes.
#pragma once

#include "base/clock.hpp"
#include "transport/verbs/wire.hpp"

#include <algorithm>
#include <cstdint>

namespace verbena::transport::verbs {

/// What the owner of a link has to do next.
enum class deed : std::uint8_t {
  nothing,
  break_off,  ///< the peer says that the connection broke: stop it, `break_off`, and `hear` the letter again
  stop,       ///< the connection that was made is none: stop it, then `drained`
  connect,    ///< to where `heard` says, then `connected`
  go_on,      ///< send what the peer lacks by `heard`
  go_on_and_say_up,  ///< and answer by `up`
  say_broken,
  say_listens,
  say_up,
  give_up,   ///< time is over
  given_up,  ///< the peer has given this link up
};

enum class connecting : std::uint8_t {
  yes,
  not_yet,  ///< it was tried, and failed
  later,    ///< there was no time to try
};

class mending {
 public:
  enum class stage : std::uint8_t { up, draining, asking, listening };
  static constexpr base::nanoseconds between_letters = 100 * base::millisecond;
  static constexpr base::nanoseconds between_tries = 100 * base::millisecond;
  static constexpr base::nanoseconds longest_gap =
      base::second;  ///< between looks, of a rank that makes calls
  static constexpr base::nanoseconds after_a_letter =
      2 * base::second;  ///< so long a peer that writes has at least

  stage is() const noexcept { return is_; }
  std::uint32_t incarnation() const noexcept { return incarnation_; }  ///< not up: of the connection to come
  const letter& heard() const noexcept { return heard_; }

  /// `since`: when the link was last known to work; `timeout`: from then on.
  void break_off(base::nanoseconds now, base::nanoseconds since, base::nanoseconds timeout) noexcept;
  /// The owner stopped everything, and all that came is told.
  deed drained(base::nanoseconds now) noexcept;
  /// A letter of the peer's.
  deed hear(const letter& news, base::nanoseconds now) noexcept;
  deed connected(connecting how, base::nanoseconds now) noexcept;
  /// Something came over the new connection: who sends, listens.
  deed carried() noexcept;
  /// What goes by the clock; often, and again until it says `nothing`. `may_write`: letters can leave.
  deed look(base::nanoseconds now, bool may_write) noexcept;
  /// A letter has left, for whatever reason it was written.
  void wrote(base::nanoseconds now) noexcept { write_at_ = now + between_letters; }
  /// The port here was down, and is back: the time to mend counts from now. Once per return of the port.
  void port_is_back(base::nanoseconds now) noexcept { broken_at_ = std::max(broken_at_, now); }
  /// For one that is given up, so that it can be said: of which connection the peer asks.
  void adopt(std::uint32_t incarnation) noexcept { incarnation_ = incarnation; }

 private:
  deed go_on(deed how) noexcept {
    is_ = stage::up;
    return how;
  }

  stage is_ = stage::up;
  bool has_heard_ = false;  ///< `heard_` is of this incarnation
  std::uint32_t incarnation_ = 0;
  letter heard_;
  base::nanoseconds broken_at_ = 0;
  base::nanoseconds timeout_ = 0;
  base::nanoseconds looked_at_ = 0;
  base::nanoseconds absent_ = 0;  ///< without a look, together: does not count, up to one timeout
  base::nanoseconds heard_at_ = 0;
  base::nanoseconds write_at_ = 0;    ///< the next letter
  base::nanoseconds connect_at_ = 0;  ///< the next try
};

/// Connections of a link, one after the other: do they carry anything, or is there something in it that breaks each?
class lives {
 public:
  static constexpr base::nanoseconds short_life = 3 * base::second;  // more than all tries of a request
  static constexpr std::uint32_t most = 10;

  void made_anew(base::nanoseconds now) noexcept {
    since_ = now;
    of_use_ = false;
  }
  /// Something of the program's has come, or is known to have arrived; or a probe was answered.
  void was_of_use() noexcept { of_use_ = true; }
  /// False: so many in a row were short or of no use, and another one would be, too.
  bool ended(base::nanoseconds now) noexcept {
    in_vain_ = since_ != 0 && (!of_use_ || now - since_ < short_life) ? in_vain_ + 1 : 0;
    return in_vain_ < most;
  }

 private:
  bool of_use_ = false;
  std::uint32_t in_vain_ = 0;
  base::nanoseconds since_ = 0;  ///< 0: it is the first one, made at join
};

/// What was sent and has come, to compare with what a peer says. All are counts since ever, and wrap.
struct standing {
  std::uint32_t sent = 0;        ///< packets
  std::uint32_t given_back = 0;  ///< of those, known to have arrived
  std::uint32_t arrived = 0;     ///< packets of the peer's
  std::uint32_t lease = 0;       ///< so many of them may be on the way
  std::uint32_t flags_sent = 0;
  std::uint32_t flags_given_back = 0;  ///< of those, known to have arrived
  std::uint32_t flags_under_way = 0;   ///< of those, not known to be over
};

/// What a letter tells can be so.
bool fits(const standing& here, const letter& news) noexcept;

}  // namespace verbena::transport::verbs
