// One peer's session: what makes packets reliable and in order over a link that loses, doubles and reorders
// them, or that breaks and is made again. A state machine: it never touches a clock, a socket or a byte of a
// packet; time is an argument, and what must be kept is kept by its customer under a number (cookie) of the
// customer's. One per peer and lane; used by the thread of its fabric.
//
//                 +-------------------- break_off --------------------+
//                 v                                                    |
//   (new) --->  broken --propose--> proposed --agree(answer)--------> up
//                 |                     |  ^ break_off leads back      ^
//                 +-----------accept(proposal) -------------------------+
//
// What a customer does, in order (docs/decisions/0032-session.md says it for tcp, verbs and sim):
//   post     if may_post(): fill your slot, write packet(cookie, now) in front, send it. Else answer `again`.
//   receive  hear() each header with a number, hear_answer() each without; report what is `accepted`, drop the rest.
//   poll     at its end: if now >= due(): look(now), send_again(), and a bare answer if wants_to_answer().
//   break    break_off(); nothing may be posted until the peer and this side have agreed on a new connection.
//   connect  one side propose()s, the other accept()s, the first agree()s; then both send_again().
// The callback `release(cookie)` gives a packet's slot back; `end(cookie, kind, error)` ends an operation.
#pragma once

#include "transport/session/receiving.hpp"
#include "transport/session/resume.hpp"
#include "transport/session/sending.hpp"

#include <cstdint>

namespace verbena::transport::session {

struct session_options {
  std::uint64_t identity = 0;        ///< the same on both sides, of no other pair of processes
  std::uint32_t most_retained = 64;  ///< packets and operations without an end; rounded up to a power of two
  std::uint32_t peer_retains = 64;   ///< the same of the peer
  bool ordered_link = false;         ///< a connection delivers in order or breaks (tcp, RC)
  bool connected = true;  ///< starts up (sim, precreated); else broken, to be connected like after a break
  answering answers;
  repeating repeats;  ///< for links that lose
};

enum class agreement : std::uint8_t {
  agreed,      ///< up; what the peer lacks goes out again
  repeated,    ///< up since the same proposal came before: answer it again, nothing else
  outdated,    ///< of a connection that was given up since, or another was proposed: ignore it
  other_peer,  ///< another process than the one this session is with
  impossible,  ///< the two sides do not fit together: something is lost for good
};

class session {
 public:
  explicit session(const session_options& options)
      : sending_(options.most_retained, options.repeats),
        receiving_(options.answers, std::bit_ceil(options.peer_retains), options.ordered_link),
        identity_(options.identity),
        state_(options.connected ? state::up : state::broken) {}

  bool up() const noexcept { return state_ == state::up; }
  std::uint32_t incarnation() const noexcept { return incarnation_; }
  const sending& sent() const noexcept { return sending_; }
  const receiving& heard() const noexcept { return receiving_; }

  // Posting.
  bool may_post() const noexcept { return up() && sending_.room() && sending_.caught_up(); }
  session_header packet(std::uint64_t cookie, base::nanoseconds now) {
    receiving_.told();
    return {sending_.post_packet(cookie, now), receiving_.acknowledges()};
  }
  /// The position is for `ended`, which says that the operation needs no replay any more.
  std::uint64_t one_sided(kind what, std::uint64_t cookie) { return sending_.post_one_sided(what, cookie); }
  void ended(std::uint64_t position) noexcept { sending_.ended(position); }
  void renamed(std::uint64_t position, std::uint64_t cookie) noexcept { sending_.renamed(position, cookie); }

  // Receiving. `incarnation`: of the connection on which it came.
  template <class Release>
  verdict hear(std::uint32_t incarnation, session_header head, base::nanoseconds now, Release&& release) {
    if (incarnation != incarnation_ || state_ == state::proposed) return verdict::stale;
    if (!sending_.acknowledge(head.acknowledged, now, release)) return verdict::malformed;
    return receiving_.take(head.sequence, now);
  }
  /// `accepted`: it told something that could be true.
  template <class Release>
  verdict hear_answer(std::uint32_t incarnation, bare_answer answer, base::nanoseconds now,
                      Release&& release) {
    if (incarnation != incarnation_ || state_ == state::proposed) return verdict::stale;
    if (!sending_.acknowledge(answer.acknowledged, now, release)) return verdict::malformed;
    const bool missing = answer.newest != answer.acknowledged;
    if (missing && next(answer.acknowledged) == next(sending_.acknowledged())) sending_.hole_told();
    return verdict::accepted;
  }

  // Time, and what to do about it.
  base::nanoseconds due() const noexcept {
    return up() ? std::min(receiving_.answer_due(), sending_.repeat_due()) : base::never;
  }
  /// False: the peer has not answered for so long that this session is given up.
  bool look(base::nanoseconds now) noexcept { return !up() || sending_.look_at_clock(now); }
  bool wants_to_answer(base::nanoseconds now) const noexcept {
    return up() && receiving_.answer_due() <= now;
  }
  bare_answer answer() noexcept { return receiving_.answer(); }

  /// `transmit(entry, header)` sends one entry again and says whether it could; only packets have a header.
  template <class Transmit>
  std::size_t send_again(Transmit&& transmit) {
    if (!up() || sending_.caught_up()) [[likely]]
      return 0;
    return sending_.again([&](const entry& e) {
      if (!transmit(e, session_header{e.sequence, receiving_.acknowledges()})) return false;
      if (e.what == kind::packet) receiving_.told();
      return true;
    });
  }

  // The connection. Packets of the old one that have arrived may still be heard until the next call below.
  void break_off() noexcept { state_ = state::broken; }

  /// A new connection, by the side that asks for it. Until it is answered nothing is heard.
  resume_point propose() noexcept {
    state_ = state::proposed;
    ++incarnation_;
    receiving_.forget_early();
    return point();
  }
  /// The other side: `answer` to send back if it is agreed or repeated, before any packet.
  template <class Release, class End>
  agreement accept(const resume_point& proposal, resume_point& answer, base::nanoseconds now,
                   Release&& release, End&& end) {
    if (proposal.session != identity_) return agreement::other_peer;
    const std::int32_t newer = distance(incarnation_, proposal.incarnation);
    // Where both propose at once, they propose the same number, and the customer lets one side accept.
    if (newer < 0 || (newer == 0 && state_ == state::broken)) return agreement::outdated;
    if (newer == 0 && up()) {
      answer = point();
      return agreement::repeated;
    }
    state_ = state::broken;  // what its callbacks post is refused
    return settle(proposal, answer, now, release, end);
  }
  template <class Release, class End>
  agreement agree(const resume_point& answer, base::nanoseconds now, Release&& release, End&& end) {
    if (answer.session != identity_) return agreement::other_peer;
    if (state_ != state::proposed || answer.incarnation != incarnation_) return agreement::outdated;
    resume_point unused;
    return settle(answer, unused, now, release, end);
  }

  /// Everything retained, for whoever gives the peer up: `take(entry)`.
  template <class Take>
  void abandon(Take&& take) {
    state_ = state::broken;
    sending_.abandon(take);
  }

  /// For tests, before the first packet: numbers do not start at 1. Both sides must do the same.
  void start_at(std::uint32_t mine, std::uint32_t theirs) noexcept {
    sending_.start_at(mine);
    receiving_.start_at(theirs);
  }

 private:
  enum class state : std::uint8_t { broken, proposed, up };

  resume_point point() const noexcept {
    return {resume_point::current_version, incarnation_, identity_, receiving_.expected(),
            sending_.last_sent()};
  }

  template <class Release, class End>
  agreement settle(const resume_point& theirs, resume_point& mine, base::nanoseconds now, Release&& release,
                   End&& end) {
    // They cannot have sent less than has arrived here.
    if (distance(before(receiving_.expected()), theirs.sent) < 0) return agreement::impossible;
    if (!sending_.resume(theirs.expected, now, release, end)) return agreement::impossible;
    incarnation_ = theirs.incarnation;
    receiving_.forget_early();
    mine = point();
    state_ = state::up;
    return agreement::agreed;
  }

  sending sending_;
  receiving receiving_;
  std::uint64_t identity_;
  std::uint32_t incarnation_ = 0;
  state state_;
};

}  // namespace verbena::transport::session
