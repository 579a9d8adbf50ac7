// All that a rank keeps of one peer that it reaches by TCP: the session, the ring of what was sent, the buffer of what
// came, the socket. It does nothing by itself; endpoint does.
//
//   absent --attach--> idle --(first use, or the peer calls)--> seeking <--break-- up
//                                                                  |--agreed-->    |
//   any of them --death, goodbye, given up--> ending --(all that came is reported)--> down
//
// Positions in `out` and `in` count up for ever:
//   out   kept_from <= unwritten_from <= end      acknowledged | kept for a replay | not with the kernel yet
//   in    held_from <= unread_from <= end         of packets that were reported in this poll | bytes of frames to come
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "transport/fabric.hpp"
#include "transport/session/session.hpp"
#include "transport/tcp/mirrored_buffer.hpp"
#include "transport/tcp/wire.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::transport::tcp {

enum class link_state : std::uint8_t { absent, idle, seeking, up, ending, down };

/// Packets to a peer that may be under way.
inline constexpr std::uint32_t most_retained = 4096;

inline session::session_options session_of(std::uint64_t identity) noexcept {
  session::session_options o;
  o.identity = identity;
  o.most_retained = o.peer_retains = most_retained;
  o.ordered_link = true;
  o.connected = false;
  o.answers = {most_retained / 4, base::millisecond};
  return o;
}

struct link {
  explicit link(peer p) : who(p) {}

  bool reachable() const noexcept {
    return state == link_state::idle || state == link_state::seeking || state == link_state::up;
  }
  bool all_written() const noexcept { return unwritten_from == out_end; }

  peer who;
  link_state state = link_state::absent;
  contact there;
  bool same_host = false;
  std::vector<way> ways;
  std::size_t proven = no_way;  ///< the one by which the peer was found last
  session::session talk{session_of(0)};

  base::unique_fd socket;  ///< only while up, or ending
  mirrored_buffer out, in;
  std::uint64_t kept_from = 0, unwritten_from = 0, out_end = 0;
  std::uint64_t held_from = 0, unread_from = 0, in_end = 0;
  std::uint32_t owed_bytes = 0;  ///< heard, and not answered

  // Seeking a connection.
  base::nanoseconds call_at = 0;    ///< when to call (again)
  base::nanoseconds called_at = 0;  ///< when the last round of calls began
  base::nanoseconds give_up_at = 0;
  base::nanoseconds pause = 0;  ///< between two rounds of calls
  bool called_later = false;    ///< the ways that are a second thought were called in this round, too
  int failure = 0;              ///< errno of the last attempt, or of the break

  // Places in the endpoint's lists.
  bool is_owing = false, is_stuffed = false, is_touched = false, is_behind = false;
  bool watches_room = false;  ///< epoll tells when the socket takes more
  bool said_bye = false;
  std::uint64_t breaks = 0;
  std::uint64_t heard_at = 0;  ///< the endpoint's tick
  std::size_t reported = 0;    ///< packets, in this poll

  errc end = errc::success;      ///< once ending
  bool read_to_the_end = false;  ///< ending: what the kernel still has is reported first
  std::string last_words;
};

}  // namespace verbena::transport::tcp
