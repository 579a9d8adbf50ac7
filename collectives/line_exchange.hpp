// The fast form of the `exchange` schedules for short vectors: each flagged line of this member's head
// carries 56 bytes of operand and its own news, so that publishing and awaiting cost one line's way. What it
// computes is the exchange schedule's (algorithms/allreduce_node.cpp): publish, await all, reduce in rank
// order; tests compare the two.
#pragma once

#include "collectives/communicator_state.hpp"
#include "collectives/reduce_kernels.hpp"

#include <cstddef>

namespace verbena::collectives {

/// How an exchange ended: well, or a member is dead, or `state.unlike` made another call.
enum class lines_end : std::uint8_t { well, loss, mismatch };

/// At least one element, as many as choose_allreduce allows. `likeness` of the call: a part of it is in each
/// line, so calls that do not fit never take each other's lines.
lines_end allreduce_in_lines(communicator_state& state, const void* in, void* out, std::size_t count,
                             std::size_t element_bytes, kernel reduce, std::uint64_t likeness) noexcept;

lines_end barrier_in_lines(communicator_state& state) noexcept;

/// Throws in the name of `what` unless it ended well.
void end_lines(communicator_state& state, lines_end how, std::string_view what, std::uint64_t likeness);

}  // namespace verbena::collectives
