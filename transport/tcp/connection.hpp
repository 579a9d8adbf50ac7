// A connection whose ends have not proven who they are yet: a socket and a handshake. Bounded in number and, where others
// called, in time.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "transport/tcp/address.hpp"
#include "transport/tcp/handshake.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace verbena::transport::tcp {

struct link;

struct connection {
  connection(std::uint64_t n, base::unique_fd fd, link* of, handshake&& begun, base::nanoseconds now)
      : number(n), socket(std::move(fd)), to(of), talk(std::move(begun)), since(now) {}

  std::uint64_t number;  ///< in epoll's events
  base::unique_fd socket;
  link* to;  ///< whom we call; null: somebody called us
  handshake talk;
  base::nanoseconds since;
  std::size_t by = no_way;  ///< of our calls: the index of the way
  bool reached = false;   ///< what we said was taken: something at the other end listens
  bool proposed = false;  ///< our session waits for this one's answer
  bool done = false;      ///< to be swept up
  int failure = 0;        ///< errno
};

}  // namespace verbena::transport::tcp
