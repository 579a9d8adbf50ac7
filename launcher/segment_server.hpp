// The node's shared segment as the launcher holds it: created before the ranks, inherited by them, announced
// on its job page, and handed out once more on an abstract socket to a rank whose wrapper has closed the
// inherited descriptor. Neither the memfd nor the socket has a name in any file system, so nothing can be
// left behind.
#pragma once

#include "base/fd.hpp"
#include "base/job_page.hpp"
#include "base/mapping.hpp"
#include "launcher/event_loop.hpp"

#include <cstdint>
#include <string>

namespace verbena::launcher {

class segment_server {
 public:
  /// Throws verbena::error if the kernel refuses. `socket_name` must be unguessable.
  segment_server(std::uint32_t size, std::string socket_name);

  int fd() const { return segment_.get(); }
  std::string variable() const;  ///< "VERBENA_SEGMENT=FD:INODE:NAME"
  const base::job_page& page() const { return page_; }

  void serve(event_loop& loop);

 private:
  void answer() const;

  base::unique_fd segment_;
  base::mapping mapped_;
  base::job_page page_;
  base::unique_fd listener_;
  std::string socket_name_;
};

}  // namespace verbena::launcher
