// Starts ranks side by side: whoever starts one is held until it executes, so the keeper has helpers, threads that do nothing
// else. They live as long as the keeper, for the kernel sends a rank's parent-death signal when the thread that made it
// ends. A rank may die before its helper has said that it was started; by its number the keeper finds out whose it was.
#pragma once

#include "base/fd.hpp"
#include "launcher/spawn.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
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
};

class start_crew {
 public:
  using on_result = std::function<void(const start_task&, const spawn_result&)>;

  /// With `helpers` threads, or as many of them as can be had. All signals are blocked in the caller. Results are told on
  /// the caller's thread only.
  start_crew(unsigned helpers, on_result tell);
  start_crew(const start_crew&) = delete;
  start_crew& operator=(const start_crew&) = delete;

  /// By a helper that has nothing to do, or else here and now.
  void start(std::unique_ptr<start_task> task);
  /// Becomes readable when a helper is done.
  int event_fd() const { return event_.get(); }
  /// Tells what helpers have done by now.
  void collect();
  /// Waits for all of them, and tells.
  void settle();
  /// If `pid` is of a rank whose result has not been told, that is done first.
  void settle(pid_t pid);
  /// Some rank may be there, or come, whose result has not been told.
  bool busy() const;

 private:
  enum state : int { idle, working, done };
  struct helper {
    std::atomic<int> now{idle};
    std::unique_ptr<start_task> task;  // the helper's while it is working
    std::atomic<pid_t> pid{0};
    spawn_result result;
    std::thread thread;
  };
  [[noreturn]] void help(helper& self) const;
  void tell(helper& one);
  void wait(helper& one);

  on_result tell_;
  base::unique_fd event_;
  std::vector<std::unique_ptr<helper>> helpers_;
};

}  // namespace verbena::launcher
