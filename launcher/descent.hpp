// Finds and kills every descendant of a process, by the parent numbers in /proc. With the caller a child
// subreaper the descent is complete: sessions, process groups and double forks do not leave it.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace verbena::launcher {

/// All descendants of `ancestor` but `spared` and theirs, parents before children; empty where /proc cannot be read.
std::vector<pid_t> find_descent(pid_t ancestor, std::span<const pid_t> spared = {});

/// Process groups of which some process is stopped, ascending.
std::vector<pid_t> stopped_groups();

/// Kills all descendants of the caller once, but for its children `spared` and theirs. Repeat until there is nothing to
/// wait for: orphans come to the caller. False: there was nobody to kill.
bool kill_descent(std::span<const pid_t> spared = {});

}  // namespace verbena::launcher
