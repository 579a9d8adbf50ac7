// The algorithms there are, and how many messages each sends per repetition (one segment): `sent` by one
// member, and by all together. Each lies in a file of its name. They know ranks and chunks, nothing else.
#pragma once

#include "collectives/schedule.hpp"

#include <cstdint>

namespace verbena::collectives {

// All-reduce over messages.
schedule allreduce_recursive_doubling(int self, int size, const shape&);
std::uint64_t allreduce_recursive_doubling_sent(int self, int size) noexcept;
std::uint64_t allreduce_recursive_doubling_total(int size) noexcept;

schedule allreduce_ring(int self, int size, const shape&);
std::uint64_t allreduce_ring_sent(int self, int size) noexcept;
std::uint64_t allreduce_ring_total(int size) noexcept;

// All-reduce in the node block; no messages.
schedule allreduce_node_exchange(int self, int size,
                                 const shape&);                    ///< everybody reads and reduces everything
schedule allreduce_node_slices(int self, int size, const shape&);  ///< everybody reduces one slice
schedule allreduce_node_gathered_slices(int self, int size,
                                        const shape&);                ///< the same, synchronised by gathering
schedule allreduce_node_gathering(int self, int size, const shape&);  ///< the last to come reduces everything

// Barrier.
schedule barrier_dissemination(int self, int size, const shape&);
std::uint64_t barrier_dissemination_sent(int self, int size) noexcept;
std::uint64_t barrier_dissemination_total(int size) noexcept;

schedule barrier_node_exchange(int self, int size, const shape&);   ///< everybody looks at everybody
schedule barrier_node_gathering(int self, int size, const shape&);  ///< one counter, one release word

// Rooted ones: shape::root.
schedule broadcast_binomial(int self, int size, const shape&);
schedule broadcast_scatter_ring(int self, int size, const shape&);
schedule broadcast_node(int self, int size, const shape&);
schedule broadcast_node_gathering(int self, int size, const shape&);

schedule reduce_binomial(int self, int size, const shape&);
schedule reduce_scatter_gather(int self, int size, const shape&);
schedule reduce_node(int self, int size, const shape&);         ///< the root reduces everything
schedule reduce_node_slices(int self, int size, const shape&);  ///< everybody reduces one slice
schedule reduce_node_gathered_slices(int self, int size,
                                     const shape&);                ///< the same, synchronised by gathering
schedule reduce_node_gathering(int self, int size, const shape&);  ///< the last to come reduces everything

schedule gather_binomial(int self, int size, const shape&);
schedule gather_linear(int self, int size, const shape&);
schedule gather_node(int self, int size, const shape&);
schedule gather_node_gathering(int self, int size, const shape&);

schedule scatter_binomial(int self, int size, const shape&);
schedule scatter_linear(int self, int size, const shape&);
schedule scatter_node(int self, int size, const shape&);
schedule scatter_node_gathering(int self, int size, const shape&);

// Over blocks, without a root.
schedule allgather_bruck(int self, int size, const shape&);
schedule allgather_ring(int self, int size, const shape&);
schedule allgather_node(int self, int size, const shape&);
schedule allgather_node_gathering(int self, int size, const shape&);

schedule alltoall_bruck(int self, int size, const shape&);
schedule alltoall_pairwise(int self, int size, const shape&);  ///< not in place
schedule alltoall_exchange(int self, int size, const shape&);
schedule alltoall_node(int self, int size, const shape&);
schedule alltoall_node_gathering(int self, int size, const shape&);

}  // namespace verbena::collectives
