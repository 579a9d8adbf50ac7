// Which algorithm serves a call: pure functions of what all members know alike, so that all choose alike.
// Knows no communicator; the reasons for the thresholds stand here.
#pragma once

#include "base/settings.hpp"
#include "collectives/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbena::collectives {

enum class method : std::uint8_t {
  // of all-reduce
  recursive_doubling,
  ring,
  node_exchange,
  node_slices,
  node_gathered_slices,
  node_gathering,
  // of the barrier
  dissemination,
  barrier_exchange,
  barrier_gathering,
  // of the others
  broadcast_binomial,
  broadcast_scatter_ring,
  broadcast_node,
  broadcast_node_gathering,
  reduce_binomial,
  reduce_scatter_gather,
  reduce_node,
  reduce_node_slices,
  reduce_node_gathered_slices,
  reduce_node_gathering,
  gather_binomial,
  gather_linear,
  gather_node,
  gather_node_gathering,
  scatter_binomial,
  scatter_linear,
  scatter_node,
  scatter_node_gathering,
  allgather_bruck,
  allgather_ring,
  allgather_node,
  allgather_node_gathering,
  alltoall_bruck,
  alltoall_pairwise,
  alltoall_exchange,
  alltoall_node,
  alltoall_node_gathering,
};
inline constexpr std::size_t methods = static_cast<std::size_t>(method::alltoall_node_gathering) + 1;

std::string_view name(method m) noexcept;
algorithm algorithm_of(method m) noexcept;

struct choice {
  method how = method::recursive_doubling;
  std::size_t segment_bytes = 0;  ///< per repetition, at most (of one block)
  bool lines = false;  ///< exchange in flagged lines instead of scratch: the same schedule, one line each
};

/// What the choice depends on besides the call.
struct surroundings {
  int size = 1;
  bool node = false;           ///< there is a node block
  std::size_t slot_bytes = 0;  ///< of its scratch
  int cores = 1;               ///< of the node
  double latency_ns = 1000;    ///< of a message (L)
  double ns_per_byte = 0.1;    ///< 1 / bandwidth (1/B)
};

/// What it depends on in a reduction besides the length.
struct operator_traits {
  std::size_t element_bytes = 8;
  bool commutative = true;
  bool own = false;  ///< a user's function
};

// `bytes`: of the vector (broadcast, reductions) or of one block (the others). All throw
// error{invalid_argument} if the settings force what these surroundings do not have.
choice choose_allreduce(const surroundings& here, std::size_t bytes, const operator_traits& by,
                        const base::settings& forced);
choice choose_barrier(const surroundings& here, const base::settings& forced);
choice choose_broadcast(const surroundings& here, std::size_t bytes, const base::settings& forced);
choice choose_reduce(const surroundings& here, std::size_t bytes, const operator_traits& by,
                     const base::settings& forced);
choice choose_gather(const surroundings& here, std::size_t block_bytes, const base::settings& forced);
choice choose_scatter(const surroundings& here, std::size_t block_bytes, const base::settings& forced);
choice choose_allgather(const surroundings& here, std::size_t block_bytes, const base::settings& forced);
choice choose_alltoall(const surroundings& here, std::size_t block_bytes, bool in_place,
                       const base::settings& forced);

}  // namespace verbena::collectives
