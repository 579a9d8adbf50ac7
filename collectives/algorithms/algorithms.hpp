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

}  // namespace verbena::collectives
