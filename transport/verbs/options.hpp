// How a rank wants its verbs fabric.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace verbena::transport::verbs {

struct options {
  std::string device;  ///< "name" or "name:port"; empty: the fastest active port
  /// Use the device's atomics although the processor's are not atomic together with them. False: only where they are.
  bool any_atomics = false;
  /// Bytes of memory that somebody vouches for that stay registered between transfers; less, if the process may lock
  /// less. 0: none do.
  std::uint64_t kept_bytes = std::uint64_t{1} << 30;
  base::nanoseconds link_timeout = 10 * base::second;  ///< the port may be down for so long
  std::function<void()> wake;  ///< from another thread: something came after `arm`. Empty: nobody sleeps
};

}  // namespace verbena::transport::verbs
