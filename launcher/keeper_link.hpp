// rdmarun's side of the keeper's socket: sends orders without ever blocking (the keeper may be busy sending
// reports), starts the ranks one by one, and hands on what is reported. Pipes are made at the moment of the
// order, so a thousand ranks do not need a thousand descriptors more while they wait.
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/keeper.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace verbena::launcher {

class keeper_link {
 public:
  struct callbacks {
    /// A rank is about to start: the read ends of its two pipes, non-blocking.
    std::function<void(std::uint32_t rank, base::unique_fd output, base::unique_fd errors)> on_pipes;
    std::function<void(const keeper_report&)> on_report;
    std::function<void()> on_gone;                ///< the keeper has ended, as told or not
    std::function<void(int error)> on_no_output;  ///< a pipe or file could not be opened
    /// If set, the rank writes into these instead of pipes; an empty one with errno means failure.
    std::function<std::array<base::unique_fd, 2>(std::uint32_t rank)> open_files;
  };

  keeper_link(event_loop& loop, base::unique_fd socket, callbacks call);
  ~keeper_link();
  keeper_link(const keeper_link&) = delete;
  keeper_link& operator=(const keeper_link&) = delete;

  void send_environment(const std::vector<std::string>& variables);
  /// Bound to these processors, if any.
  void start(std::uint32_t rank, const std::vector<unsigned>& cpus);
  void signal(int number, bool from_terminal);
  void resume();  ///< those that are stopped
  void kill_all();  ///< drops what has not been started
  void end();

 private:
  struct pending {
    keeper_order order;
    std::string tail;
  };
  void push(keeper_order order, std::string tail = {});
  void pump();
  bool send_one(const pending& next);
  bool open_outputs(std::uint32_t rank, std::array<base::unique_fd, 2>& ours,
                    std::array<base::unique_fd, 2>& theirs) const;
  void receive();

  event_loop& loop_;
  base::unique_fd socket_;
  callbacks call_;
  std::deque<pending> orders_;
  bool writing_ = false;
  bool gone_ = false;
};

}  // namespace verbena::launcher
