// Starts one rank from the keeper: the child shares the keeper's memory until it executes (as posix_spawn
// does), so a start costs no copy of page tables and a failed one reports its errno directly.
#pragma once

#include "launcher/job.hpp"

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <span>

namespace verbena::launcher {

struct spawn_request {
  const char* program = nullptr;        ///< a path, or a name without a slash that is not there
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;  ///< nullptr: stay
  int input = -1;
  int output = -1;
  int errors = -1;
  int kept = -1;                        ///< descriptor that loses close-on-exec
  bool own_group = true;                ///< a process group of its own
  sigset_t signal_mask{};               ///< as rdmarun found it
  std::span<const unsigned long> cpus;  ///< affinity mask, bit by bit; empty: keep the keeper's
};

struct spawn_result {
  pid_t pid = -1;  ///< -1: failed, and then:
  start_step step = start_step::make_process;
  int error = 0;
  int binding_error = 0;  ///< the rank runs, but where it likes
};

/// Holds the calling thread, and no other, until the rank executes; on that thread's end the rank is killed. All signals must be
/// blocked. `number`: where the kernel writes the number of the process before it runs.
spawn_result spawn(const spawn_request& request, std::atomic<pid_t>* number = nullptr);

}  // namespace verbena::launcher
