// How a rank wants its verbs fabric.
#pragma once

#include <functional>
#include <string>

namespace verbena::transport::verbs {

struct options {
  std::string device;  ///< "name" or "name:port"; empty: the fastest active port
  /// Use the device's atomics although the processor's are not atomic together with them. False: only where they are.
  bool any_atomics = false;
  std::function<void()> wake;  ///< from another thread: something came after `arm`. Empty: nobody sleeps
};

}  // namespace verbena::transport::verbs
