// What a device says by itself: its port went down or came back, an address changed, it failed. Each is a row of one table:
// what it means, and what follows for those who use the device. They are read by whoever is there, the helper thread or,
// where there is none, the rank; the rank acts on them. It must not know peers.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

namespace verbena::transport::verbs {

/// What follows from an event.
enum class consequence : std::uint8_t {
  none,          ///< it is nothing, or completions tell of it as well
  port_down,     ///< everything waits for the port, for some time
  port_up,       ///< it need not any longer
  address,       ///< the table of GIDs is not what it was
  receives_low,  ///< few posted receives are left
  queue_pair,    ///< one queue pair is of no use any more
  all,           ///< none is
};

struct event_row {
  ibv_event_type what;
  std::string_view name;
  std::string_view meaning;
  consequence follows;
};

/// The row of an event; an unknown one gets a row that says so.
const event_row& row_of(ibv_event_type what) noexcept;

struct device_event {
  const event_row* row = nullptr;
  std::uint32_t number = 0;  ///< of the port, or of the queue pair; 0: it concerns neither
};

/// The events of one device, from the kernel to the rank.
class device_events {
 public:
  /// `port`: the one that matters. The device outlives it.
  device_events(ibv_context& device, std::uint8_t port) noexcept;

  int descriptor() const noexcept { return device_.async_fd; }
  /// Takes what the kernel has; from any thread. True: there was something.
  bool read() noexcept;
  /// One load: there is something for `take`.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }  // `take` locks
  std::vector<device_event> take();
  /// Between its going down and its coming back, as read.
  bool port_is_down() const noexcept {
    return port_down_.load(std::memory_order_relaxed);
  }  // a hint to look again

 private:
  ibv_context& device_;
  std::uint8_t port_;
  std::mutex lock_;
  std::vector<device_event> news_;  ///< by lock_
  std::atomic<bool> any_{false};
  std::atomic<bool> port_down_{false};
};

}  // namespace verbena::transport::verbs
