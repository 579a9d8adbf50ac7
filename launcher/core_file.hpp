// Where the kernel has put the core file of a process, as far as its pattern tells. Pure but for the reading
// of two files.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace verbena::launcher {

/// "core dumped to 'PATH'", "core handed to 'PROGRAM'", or "core dumped" where the name cannot be known from
/// here. `pattern` as in core(5); a relative one lies in `directory`.
std::string describe_core(std::string_view pattern, bool uses_pid, pid_t pid, std::string_view directory);

/// The same with this machine's pattern, for a process whose directory was `directory` (empty: ours).
std::string describe_core(pid_t pid, std::string_view directory);

}  // namespace verbena::launcher
