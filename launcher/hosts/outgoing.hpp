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
  /// Bytes of each output that may be on their way per agent before rdmarun has said anything.
  static constexpr std::uint32_t first_credit = 512 * 1024;

  outgoing(event_loop& loop,
           std::function<void(std::uint32_t rank, std::uint8_t which, std::string_view)> send)
      : loop_(loop), send_(std::move(send)) {}

  /// `which`: 0 standard output, 1 error.
  void add(std::uint32_t rank, std::uint8_t which, base::unique_fd pipe);
  void grant(std::uint8_t which, std::uint32_t bytes);
  /// All ranks have ended: sends what is in the pipes, as far as it is granted, and then calls `action`.
  void finish(std::function<void()> action);
  /// Nobody reads that output any more: the ranks shall notice.
  void drop(std::uint8_t which);

 private:
  struct pipe_end {
    base::unique_fd fd;
    std::uint32_t rank = 0;
    std::uint8_t which = 0;
  };
  enum class found { bytes, nothing, end, no_credit };
  found read_from(int fd);
  void read_out();
  void end_when_empty();
  void watch(int fd);

  event_loop& loop_;
  std::function<void(std::uint32_t, std::uint8_t, std::string_view)> send_;
  std::unordered_map<int, pipe_end> pipes_;
  std::array<bool, 2> dropped_{};
  std::array<std::uint32_t, 2> credit_{first_credit, first_credit};
  std::function<void()> on_all_read_;  // set once the ranks have ended
};

}  // namespace verbena::launcher
