// New communicators out of old ones (MPI 4.0, section 7.4). Each call is collective: every rank of `on` makes
// it, in the same order as its other collective calls there. Messages of different communicators never meet.
// Errors that only some ranks can see (a bad colour, a bad list) are told to all of them, by
// error{invalid_argument} on each.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>
#include <verbena/owned_communicator.hpp>

#include <span>

namespace verbena {

/// A color that says: not in any of the new communicators (MPI_UNDEFINED).
inline constexpr int undefined_color = -1;

/// The same ranks in the same order. Attributes are copied as their keys say.
VERBENA_API owned_communicator dup(communicator on);

/// One communicator per color (0 or more), of the ranks that gave it, ordered by key, then by rank in `on`.
/// Empty for undefined_color.
VERBENA_API owned_communicator split(communicator on, int color, int key = 0);

/// The ranks of `on` that share this rank's node, in their order there (MPI_COMM_TYPE_SHARED).
VERBENA_API owned_communicator split_node(communicator on);

/// The ranks `members` of `on`, in that order; empty on ranks that are not in their list. Ranks of one new
/// communicator give the same list; lists that have no rank in common make several communicators at once. An
/// empty list: not in any.
VERBENA_API owned_communicator create(communicator on, std::span<const rank> members);

}  // namespace verbena
