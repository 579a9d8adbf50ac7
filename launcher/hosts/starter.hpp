// Whatever starts the agent of one host: ssh, a command of the user's, or this program itself on its own host. It runs in a
// session of its own, so that a Ctrl-C is not its end, and dies with rdmarun.
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

class starter {
 public:
  /// `input` is written to its standard input, which is then closed. Its standard output is dropped (a login that prints is
  /// no harm), its standard error kept. `on_end`: it has ended, with this wait status.
  starter(event_loop& loop, const std::vector<std::string>& command, const std::string& input,
          std::function<void(int status)> on_end);
  ~starter();  ///< ends it if it has not
  starter(const starter&) = delete;
  starter& operator=(const starter&) = delete;

  bool running() const { return pid_ > 0; }
  /// The end of what it has said on standard error, without the last newline.
  std::string words();
  /// Waits for it, at most so long.
  void finish(base::nanoseconds patience);

 private:
  void reap(int flags);
  void take_words();

  event_loop& loop_;
  std::function<void(int)> on_end_;
  pid_t pid_ = -1;
  base::unique_fd handle_;  // pidfd
  base::unique_fd errors_;
  std::string words_;
};

/// Of an ssh that has ended: the sshd there, or one on the way there, did not let it begin to log in, as it does when too many are about to
/// (MaxStartups). Not: what will be so the next time as well.
bool turned_away(std::string_view words, int code);

/// Starts this program as the agent of its own host, with its end of a socket pair. Returns ours, or an empty one. The child
/// shares our standard input, output and error.
base::unique_fd start_own_agent(pid_t& pid);

}  // namespace verbena::launcher
