// The keeper: a child of rdmarun, forked before any thread exists, that is the parent of all ranks. It holds
// nothing but their process ids, so it can outlive rdmarun's death by any signal just long enough to end
// everything that the job started: end of file on its socket, and it kills its whole descent (it is a child
// subreaper) until none is left. Ranks carry a parent-death signal on it, for the case that it is killed
// itself.
//
// The two talk over a SOCK_SEQPACKET pair, one packet per message. It must not know PMIx, outputs or
// verdicts.
#pragma once

#include "base/fd.hpp"
#include "launcher/job.hpp"

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace verbena::launcher {

/// rdmarun to keeper. A `start` carries the rank's standard output and error as descriptors.
struct keeper_order {
  enum class kind : std::uint8_t {
    plan,       ///< carries two descriptors: a file in memory with the rank_plan, and the shared segment
    variables,  ///< followed by "NAME=value\0" strings: what PMIx adds to each rank's environment
    start,      ///< start `rank`; followed by the numbers (unsigned) of the processors to bind it to; none: it is not
    signal,     ///< send `signal` to each rank's process group
    resume,     ///< let those go on that are stopped, so that they see what has been sent to them
    kill,       ///< kill the whole descent until none is left, go on reporting
    end,        ///< the same, then exit
  };
  kind what = kind::end;
  bool from_terminal = false;  ///< the terminal has sent it to its foreground group already
  std::uint32_t rank = 0;
  std::int32_t signal = 0;
};

/// Keeper to rdmarun.
struct keeper_report {
  enum class kind : std::uint8_t { started, start_failed, exited };
  kind what = kind::exited;
  start_step step = start_step::execute;
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t value =
      0;  ///< errno of a failed start or, if `started`, of a failed binding; or the wait status
};

/// What the keeper needs to start ranks.
struct rank_plan {
  std::vector<std::vector<std::string>> programs;  ///< each program and its arguments
  std::vector<std::uint32_t> program_of;           ///< of each rank of the job
  std::vector<std::uint32_t> local_ranks;          ///< those of this host, ascending
  std::vector<std::string> environment;            ///< of every rank, without what PMIx adds
  std::string directory;                           ///< to enter first; empty: stay
  std::int32_t input_rank = 0;                     ///< inherits the standard input; -1: nobody
  bool leaves = false;  ///< the keeper ends without being told to, once all ranks have been reported and nothing is left
  template <class A>
  void fields(A& a) {
    a(programs, program_of, local_ranks, environment, directory, input_rank, leaves);
  }
};

/// What it inherits.
struct keeper_legacy {
  sigset_t signal_mask{};  ///< for the ranks
  int parents_fd = -1;     ///< to be closed: a pipe must end when the parent closes it
  int segment_place = -1;  ///< the number under which each rank inherits the segment; taken by something else until it comes
};

/// Forks the keeper. Returns rdmarun's end of the socket; `pid` is the keeper's.
base::unique_fd start_keeper(const keeper_legacy& legacy, pid_t& pid);
/// The first thing to be sent over it. False, with errno: it cannot be.
bool send_plan(int socket, const rank_plan& plan, int segment_fd);

}  // namespace verbena::launcher
