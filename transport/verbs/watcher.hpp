// The one helper thread: it sleeps on the completion channel and on the device's events for a rank that sleeps on its
// doorbell, and rings it. It moves no data. Made when a rank first goes to sleep.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "transport/verbs/device_events.hpp"

#include <infiniband/verbs.h>

#include <atomic>
#include <functional>
#include <thread>

namespace verbena::transport::verbs {

class watcher {
 public:
  /// The channel and the events outlive it. `longest`: the rank is woken after so long without either, to look around.
  watcher(ibv_comp_channel& channel, device_events& events, base::nanoseconds longest,
          std::function<void()> wake);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  /// True: the rank is woken often, to look after what goes by the clock.
  void hurry(bool often) noexcept;

 private:
  void watch() noexcept;

  ibv_comp_channel& channel_;
  device_events& events_;
  int longest_ms_;
  std::function<void()> wake_;
  std::atomic<bool> hurries_{false};
  std::atomic<bool> ends_{false};
  base::unique_fd change_;  ///< readable: one of the two has changed
  std::thread thread_;
};

}  // namespace verbena::transport::verbs
