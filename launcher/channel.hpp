// One output and the rank pipes that feed it: reads the pipes, merges them into whole lines, and stops
// reading while the output is full, so that a slow reader slows the ranks down as in any shell pipeline. It
// must not know which rank is which, nor what a closed output means for the job.
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/line_merger.hpp"
#include "launcher/sink.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace verbena::launcher {

class channel {
 public:
  /// An unfinished line of a single stream appears after this silence; of several streams, after the longer
  /// one.
  static constexpr base::nanoseconds prompt_delay = 70 * base::millisecond;
  static constexpr base::nanoseconds prompts_delay = 1 * base::second;

  channel(event_loop& loop, int fd);

  /// Takes over the read end of a pipe (non-blocking); its lines get `prefix`.
  void add(base::unique_fd pipe, std::string prefix);

  /// Another stream, whose bytes come by `take`; returns its number.
  std::size_t open(std::string prefix) { return merger_.add_stream(std::move(prefix)); }
  /// False: full, bring no more before `on_room`.
  bool take(std::size_t stream, std::string_view bytes);
  void on_room(std::function<void()> action) { on_room_ = std::move(action); }

  /// A line of the launcher itself.
  void say(std::string_view line);

  void pump() { sink_.pump(); }
  bool broken() const { return sink_.broken(); }
  /// Called with errno when the output is gone; the pipes have been closed, so that the ranks notice as well.
  void on_broken(std::function<void(int)> action) { on_broken_ = std::move(action); }

  /// The end: takes what is in the pipes, lets go of all unfinished lines and waits for the reader.
  void finish(base::nanoseconds patience);

 private:
  struct pipe_end {
    base::unique_fd fd;
    std::size_t stream = 0;
  };
  bool read_from(int fd);  ///< false if there was nothing
  void close(int fd);
  void pause(bool paused);
  void schedule_flush();
  void flush_quiet();

  event_loop& loop_;
  sink sink_;
  line_merger merger_;
  std::unordered_map<int, pipe_end> pipes_;
  bool paused_ = false;
  bool flush_scheduled_ = false;
  base::nanoseconds last_input_ = 0;
  std::function<void(int)> on_broken_;
  std::function<void()> on_room_;
};

}  // namespace verbena::launcher
