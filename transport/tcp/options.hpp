// How a rank wants its TCP fabric.
#pragma once

#include "base/clock.hpp"
#include "base/network.hpp"

#include <cstddef>
#include <functional>

namespace verbena::transport::tcp {

struct options {
  bool only_this_host = false;  ///< all ranks are on this host: listen on the loopback alone
  base::interface_list interfaces;  ///< whose addresses are published, and lead to others
  base::port_range ports;           ///< where to listen
  base::nanoseconds link_timeout = 10 * base::second;  ///< a link that is down for so long is given up
  std::size_t ring_bytes = 1U << 20;  ///< per peer: sent and not acknowledged; a power of two, of pages
  std::function<void()> wake;  ///< from another thread: something came after `arm`. Empty: nobody sleeps
};

}  // namespace verbena::transport::tcp
