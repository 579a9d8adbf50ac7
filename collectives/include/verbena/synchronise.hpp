// Barrier and broadcast (MPI 4.0, sections 6.3 and 6.4). The rules for all collectives stand in
// verbena/collectives.hpp.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>

#include <cstddef>
#include <ranges>

namespace verbena {

/// Returns (ends) when every rank has called (started) it. MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init.
VERBENA_API void barrier(communicator on);
VERBENA_API request ibarrier(communicator on);
VERBENA_API persistent_request barrier_init(communicator on);

/// Copies the root's `bytes` bytes at `data` into every other rank's. `bytes` is the same on all ranks;
/// `data` may be null if it is 0. MPI_Bcast, MPI_Ibcast, MPI_Bcast_init.
VERBENA_API void broadcast(communicator on, void* data, std::size_t bytes, rank root);
VERBENA_API request ibroadcast(communicator on, void* data, std::size_t bytes, rank root);
VERBENA_API persistent_request broadcast_init(communicator on, void* data, std::size_t bytes, rank root);

/// The elements of a range, equally many on all ranks: anything contiguous (std::vector, std::array,
/// std::span, ...).
template <message_range Range>
void broadcast(communicator on, Range&& data, rank root) {
  broadcast(on, std::ranges::data(data), std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>),
            root);
}
template <message_range Range>
request ibroadcast(communicator on, Range&& data, rank root) {
  return ibroadcast(on, std::ranges::data(data),
                    std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>), root);
}
template <message_range Range>
persistent_request broadcast_init(communicator on, Range&& data, rank root) {
  return broadcast_init(on, std::ranges::data(data),
                        std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>), root);
}

/// One object.
template <message_object Object>
void broadcast(communicator on, Object& value, rank root) {
  broadcast(on, &value, sizeof value, root);
}
template <message_object Object>
request ibroadcast(communicator on, Object& value, rank root) {
  return ibroadcast(on, &value, sizeof value, root);
}

}  // namespace verbena
