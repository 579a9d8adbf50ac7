// Finds the node's shared segment that rdmarun made: the inherited descriptor if it is still the one meant, else a fresh
// one from the launcher's abstract socket. It must not know what is in the segment.
#pragma once

#include "base/fd.hpp"

#include <string>

namespace verbena::runtime {

/// `variable` is the value of VERBENA_SEGMENT, FD:INODE:NAME. Returns the descriptor, close-on-exec and owned by the
/// caller; the inherited one is left to the processes this one may start. Throws error{errc::system} or
/// error{errc::malformed}.
base::unique_fd find_inherited_segment(const std::string& variable);

}  // namespace verbena::runtime
