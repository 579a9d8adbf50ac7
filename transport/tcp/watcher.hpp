// The one helper thread: it sleeps on the sockets for a rank that sleeps on its doorbell, and rings it. It moves no data.
// Made when a rank first goes to sleep.
//
// `armed_` is set by the rank and cleared by the thread; between two arms the thread sleeps without looking at the sockets,
// or still looks since nothing came. A ring too many is harmless, one too few is not possible: what arrives after the rank's
// last look finds the thread looking, or about to, and epoll tells a state, not an edge.
#pragma once

#include "base/fd.hpp"

#include <atomic>
#include <functional>
#include <thread>

namespace verbena::transport::tcp {

class watcher {
 public:
  /// The epoll descriptor outlives it. Throws if there is no thread to be had.
  watcher(int epoll, std::function<void()> wake);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  /// From here on the next event rings.
  void arm() noexcept;
  void disarm() noexcept { wanted_.store(false, std::memory_order_relaxed); }

 private:
  void watch() noexcept;

  int epoll_;
  std::function<void()> wake_;
  base::unique_fd call_;  ///< eventfd: look at armed_ and ending_
  std::atomic<bool> armed_{false}, wanted_{false}, ending_{false};
  std::thread thread_;
};

}  // namespace verbena::transport::tcp
