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
#include <vector>

namespace verbena::launcher {

class segment_server {
 public:
  /// Throws verbena::error if the kernel refuses. `socket_name` must be unguessable.
  /// `ranks`: those of the job that are on this node, ascending.
  /// `cores`: what they share, until share_cores says better.
  segment_server(std::uint32_t job_size, std::vector<std::uint32_t> ranks, std::uint32_t cores, std::string socket_name);

  int fd() const { return segment_.get(); }
  /// The segment's descriptor gets the number of `place`, which is replaced.
  void move_to(base::unique_fd place);
  std::string variable() const;  ///< "VERBENA_SEGMENT=FD:INODE:NAME"

  /// How many cores the ranks share; said before the first of them starts.
  void share_cores(std::uint32_t count) { page_.header().cores = count; }

  /// Writes a rank's state on the job page and wakes those who may be waiting for it: ranks that are in the
  /// job. News of a rank that joins wakes nobody: who waits for its messages is called by those. (Waking
  /// everybody about everybody would cost a square of system calls.)
  void announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome);
  void announce_ending() { page_.announce_ending(); }

  void serve(event_loop& loop);

 private:
  void answer() const;

  base::unique_fd segment_;
  base::mapping mapped_;
  base::job_page page_;
  std::vector<std::uint32_t> ranks_;
  std::vector<bool> in_job_;  // of each of them: has joined and not left
  base::unique_fd listener_;
  std::string socket_name_;
};

}  // namespace verbena::launcher
