// The launcher's one event loop: descriptors (epoll), timers and a hook that runs before each sleep.
// Single-threaded; other threads reach it through an eventfd that somebody watches. It must not know what the
// descriptors mean.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

namespace verbena::launcher {

class event_loop {
 public:
  using handler = std::function<void(std::uint32_t events)>;
  using timer = std::uint64_t;

  event_loop();

  /// Watches a descriptor for EPOLLIN and the like; false if the kernel cannot watch it (a regular file).
  bool watch(int fd, std::uint32_t events, handler on_event);
  void change(int fd, std::uint32_t events);
  void forget(int fd);  ///< before the descriptor is closed; may be called from its own handler

  timer after(base::nanoseconds delay, std::function<void()> action);
  void cancel(timer id);  ///< of a timer that has fired: no effect

  /// Called before each sleep, to send what one round of events has collected.
  void before_sleep(std::function<void()> hook) { hook_ = std::move(hook); }

  /// Runs until `stop()`.
  void run();
  void stop() { stopped_ = true; }

 private:
  struct watched {
    handler on_event;
  };
  int sleep_ms() const;
  void fire_timers();

  base::unique_fd epoll_;
  std::unordered_map<int, std::shared_ptr<watched>> watched_;
  std::map<std::pair<base::nanoseconds, timer>, std::function<void()>> timers_;
  timer next_timer_ = 1;
  std::function<void()> hook_;
  bool stopped_ = false;
};

}  // namespace verbena::launcher
