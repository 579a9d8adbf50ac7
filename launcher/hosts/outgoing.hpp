// The outputs of an agent's ranks on their way to rdmarun: read from the pipes as far as rdmarun has granted, so that a slow
// reader there slows the ranks down here, and orders and reports never wait behind output.
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace verbena::launcher {

class outgoing {
 public:
  /// Bytes that may be on their way per agent before rdmarun has said anything.
  static constexpr std::uint32_t first_credit = 512 * 1024;

  outgoing(event_loop& loop,
           std::function<void(std::uint32_t rank, std::uint8_t which, std::string_view)> send)
      : loop_(loop), send_(std::move(send)) {}

  void add(std::uint32_t rank, std::uint8_t which, base::unique_fd pipe);
  void grant(std::uint32_t bytes);
  /// Called when the last pipe has ended, or at once if there is none; nobody writes into them any more.
  void on_all_read(std::function<void()> action);
  /// Nobody reads standard output (0) or error (1) any more: the ranks shall notice.
  void drop(std::uint8_t which);

 private:
  struct pipe_end {
    base::unique_fd fd;
    std::uint32_t rank = 0;
    std::uint8_t which = 0;
  };
  void read_from(int fd);
  void watch(int fd);

  event_loop& loop_;
  std::function<void(std::uint32_t, std::uint8_t, std::string_view)> send_;
  std::unordered_map<int, pipe_end> pipes_;
  std::array<bool, 2> dropped_{};
  std::uint32_t credit_ = first_credit;
  std::function<void()> on_all_read_;
};

}  // namespace verbena::launcher
