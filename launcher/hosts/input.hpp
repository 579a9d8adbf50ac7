// The standard input of a rank on another host: rdmarun reads its own and sends it, the agent gives it to the rank through a pipe. No
// more is read than 64 KiB ahead of the rank: what is on its way and in the agent, and what lies in the pipe.
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace verbena::launcher {

inline constexpr std::uint32_t input_on_its_way = 48 * 1024;
inline constexpr int input_in_pipe = 16 * 1024;

/// In rdmarun. Reads descriptor 0, whose flags others share and which therefore stay as they are.
class input_source {
 public:
  /// `send`: bytes for the rank, at most `input_on_its_way` of them not taken; none: that was all.
  input_source(event_loop& loop, std::function<void(std::string_view)> send);
  ~input_source();
  input_source(const input_source&) = delete;
  input_source& operator=(const input_source&) = delete;

  /// The rank's agent has given so many on. False: it never got so many.
  bool taken(std::uint32_t bytes);
  /// Nobody will read any more.
  void stop();

 private:
  void read_on();
  void watch(bool wanted);

  event_loop& loop_;
  std::function<void(std::string_view)> send_;
  base::unique_fd reopened_;
  int fd_ = 0;
  std::uint32_t under_way_ = 0;
  event_loop::timer again_ = 0;  // in the background: look later
  bool watching_ = false;
  bool ended_ = false;
};

/// In the agent.
class input_pipe {
 public:
  /// `tell`: so many bytes have been given on; or nobody reads any more. The read end is descriptor 0 until somebody puts
  /// something else there: whoever inherits it reads.
  input_pipe(event_loop& loop, std::function<void(std::uint32_t bytes, bool closed)> tell);
  ~input_pipe();
  input_pipe(const input_pipe&) = delete;
  input_pipe& operator=(const input_pipe&) = delete;

  /// The write end: no process that the rank's end of file depends on may inherit it. -1: there is none.
  int fd() const { return write_end_.get(); }
  /// From rdmarun; none: that was all. False: more than was asked for.
  bool take(std::string_view bytes);

 private:
  void pump();
  void close();

  event_loop& loop_;
  std::function<void(std::uint32_t, bool)> tell_;
  base::unique_fd write_end_;
  std::string queue_;
  bool watching_ = false;
  bool ended_ = false;  // nothing comes any more
};

}  // namespace verbena::launcher
