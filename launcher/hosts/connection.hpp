// One connection between rdmarun and an agent: frames in both directions on the event loop, never blocking. It must not know
// what they mean, nor who is at the other end: that was proven before (proof.hpp).
#pragma once

#include "base/fd.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/hosts/frame.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace verbena::launcher {

class connection {
 public:
  struct callbacks {
    std::function<void(frame_kind kind, const std::string& payload)> on_frame;
    /// Once: the other end closed (`error` 0), or the connection broke. Nothing follows.
    std::function<void(int error)> on_closed;
  };

  connection(event_loop& loop, base::unique_fd socket, callbacks call);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// A host that the network does not reach for so long (at least 3 s; 10 s until this is called) is lost. One whose processes are
  /// stopped is not: its kernel answers.
  void set_link_timeout(base::nanoseconds timeout);
  /// How long the other host's kernel has said nothing. It is asked about ten times per link timeout; 0 within a host.
  base::nanoseconds unheard() const;
  /// Twice the time between two questions.
  base::nanoseconds usual_silence() const { return std::max(silence_ / 5, 2 * base::second); }

  void send(frame_kind kind, std::string_view payload = {});
  template <class Message>
  void send(const Message& message) {
    send(Message::kind, write_fields(message));
  }

  bool closed() const { return !socket_; }
  /// No further word in either direction, and no call.
  void close();

 private:
  void on_ready(std::uint32_t events);
  void receive();
  void pump();
  void doubt();
  void lose(int error);

  event_loop& loop_;
  base::unique_fd socket_;
  callbacks call_;
  frame_cutter incoming_;
  std::string queue_;
  std::size_t at_ = 0;
  bool writing_ = false;
  base::nanoseconds silence_ = 0;  ///< that ends the connection
  event_loop::timer doubt_ = 0;    ///< the next look at it; 0: none yet
};

}  // namespace verbena::launcher
