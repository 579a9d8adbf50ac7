// The fast form of the `exchange` schedules for short vectors: each flagged line of this member's head
// carries 56 bytes of operand and its own news, so that publishing and awaiting cost one line's way. What it
// computes is the exchange schedule's (algorithms/allreduce_node.cpp): publish, await all, reduce in rank
// order; tests compare the two.
#pragma once

#include "collectives/communicator_state.hpp"
#include "collectives/reduce_kernels.hpp"

#include <cstddef>

namespace verbena::collectives {

/// At most largest_line_exchange bytes, at least one element. False: a member is dead.
bool allreduce_in_lines(communicator_state& state, const void* in, void* out, std::size_t count,
                        std::size_t element_bytes, kernel reduce) noexcept;

bool barrier_in_lines(communicator_state& state) noexcept;

}  // namespace verbena::collectives
