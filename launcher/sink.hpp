// One output of the launcher (standard output, standard error, a file): a queue of bytes written as fast as
// the reader takes them, without ever blocking the event loop. The open file may be shared with other
// programs, so its flags are not touched: pipes and terminals are opened once more, non-blocking, and where
// that is refused they are written in pieces that a writable pipe must take.
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace verbena::launcher {

class sink {
 public:
  /// Above `full` bytes the feeders should stop reading; they may go on below `room`.
  static constexpr std::size_t full = 256 * 1024;
  static constexpr std::size_t room = 64 * 1024;

  /// `fd` stays the caller's and must outlive the sink.
  sink(event_loop& loop, int fd);
  ~sink();
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;

  void on_room(std::function<void()> action) { on_room_ = std::move(action); }
  /// Called once, with errno, when the output cannot be written any more; what is queued is dropped.
  void on_broken(std::function<void(int)> action) { on_broken_ = std::move(action); }

  std::string& queue() { return queue_; }  ///< append here, then pump()
  void pump();                             ///< writes what can be written now
  std::size_t queued() const { return queue_.size() - written_; }
  bool broken() const { return broken_; }

  /// For the last words: writes everything and waits up to `patience` for the reader.
  void drain(base::nanoseconds patience);

 private:
  enum class kind { file, nonblocking, socket, careful };
  long write_some();
  void set_watching(bool wanted);
  void fail(int error);

  event_loop& loop_;
  int fd_;
  base::unique_fd reopened_;
  kind kind_ = kind::file;
  std::string queue_;
  std::size_t written_ = 0;
  bool watching_ = false;
  bool was_full_ = false;
  bool broken_ = false;
  std::function<void()> on_room_;
  std::function<void(int)> on_broken_;
};

}  // namespace verbena::launcher
