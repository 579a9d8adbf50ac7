// Are two agents on one host? Names lie, and several may lead to one host; so do host names and boot numbers, which containers
// share. What counts is whether their ranks could share memory: the same kernel, and the same network namespace, in which the
// socket lies that hands out a segment.
#pragma once

#include <string>

namespace verbena::launcher {

/// The same text in two processes if and only if they are on one host.
std::string host_identity();

}  // namespace verbena::launcher
