// Starts ranks side by side: whoever starts one is held until it executes, so the keeper has helpers, threads that do nothing
// else. They live as long as the keeper, for the kernel sends a rank's parent-death signal when the thread that made it
// ends. A rank may die before its helper has said that it was started; by its number the keeper finds out whose it was.
#pragma once

#include "base/fd.hpp"
#include "launcher/spawn.hpp"

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace verbena::launcher {

/// One rank to be started, with all that the request points to.
struct start_task {
  std::uint32_t rank = 0;
  bool reads = false;           ///< the standard input
  bool reads_terminal = false;  ///< and that is a terminal
  std::string program;
  std::vector<std::string> own;  ///< variables of this rank
  std::vector<char*> arguments, environment;
  std::vector<unsigned long> mask;
  base::unique_fd output, errors;
  spawn_request request;
  std::vector<std::pair<int, bool>> signals;  ///< for when it runs, and whether the terminal has sent them; the keeper's own
};

class start_crew {
 public:
  using on_result = std::function<void(const start_task&, const spawn_result&)>;

  /// With `helpers` threads, or as many of them as can be had. All signals are blocked in the caller. Results are told on
  /// the caller's thread only.
  start_crew(unsigned helpers, on_result tell);
  start_crew(const start_crew&) = delete;
  start_crew& operator=(const start_crew&) = delete;

  void start(std::unique_ptr<start_task> task);
  /// Drops what no helper has begun with.
  void drop();

  /// Becomes readable when a helper is done.
  int event_fd() const { return event_.get(); }
  /// Tells what helpers have done by now.
  void collect();
  /// Those whose results have not been told.
  void each_untold(const std::function<void(start_task&)>& visit);
  /// If `pid` is of a rank whose result has not been told, that is done first.
  void settle(pid_t pid);
  /// Some rank may be there, or come, whose result has not been told.
  bool busy() const;

 private:
  struct helper {
    std::unique_ptr<start_task> task;
    std::atomic<pid_t> pid{0};  // written by the kernel as well
  };
  [[noreturn]] void help(helper& self);

  on_result tell_;
  base::unique_fd event_;
  std::vector<std::unique_ptr<helper>> helpers_;

  mutable std::mutex mutex_;      // of all below, and of the helpers' tasks
  std::condition_variable news_;  // for helpers: a task; for the caller: a result
  std::deque<std::unique_ptr<start_task>> queued_;
  std::vector<std::pair<std::unique_ptr<start_task>, spawn_result>> finished_;
};

}  // namespace verbena::launcher
