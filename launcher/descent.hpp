// Finds and kills every descendant of a process, by the parent numbers in /proc. With the caller a child
// subreaper the descent is complete: sessions, process groups and double forks do not leave it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace verbena::launcher {

/// All descendants of `ancestor`, parents before children; empty where /proc cannot be read.
std::vector<pid_t> find_descent(pid_t ancestor);

/// Kills all descendants of the caller once. Repeat until there is nothing to wait for: orphans come to the
/// caller.
void kill_descent();

}  // namespace verbena::launcher
