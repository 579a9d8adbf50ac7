#include "collectives/choose.hpp"

#include "collectives/executor.hpp"
#include "collectives/node_block.hpp"

#include <fmt/format.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <bit>

namespace verbena::collectives {
namespace {

/// Segments of the message algorithms: private scratch is one chunk (recursive doubling) or two (ring).
constexpr std::size_t doubling_segment = 512 << 10;
constexpr std::size_t ring_chunk = 256 << 10;

/// Of the exchange of two (measured: 16 KiB best in 8 KiB pieces, 64 KiB and 1 MiB in 32 KiB pieces).
constexpr std::size_t smallest_piece = 8 << 10;
constexpr std::size_t largest_piece = 32 << 10;

/// Up to here the members' n * n reads cost less than a second synchronisation.
constexpr std::size_t largest_exchange_of_many = 8 << 10;
/// More ranks than cores: up to here one core reduces everything in less time than a second gathering and the
/// n * n short steps of slices take (measured with 4, 16 and 64 ranks on 2 cores).
constexpr std::size_t largest_gathering(int size) noexcept {
  const auto n = static_cast<std::size_t>(size);
  return std::max<std::size_t>(16 << 10, n * n * 64);
}

constexpr bool crowded(const surroundings& here) noexcept {
  return here.size > 2 && here.size > here.cores;
}

/// Elements up to this size, and combined by our own kernels, go through flagged lines.
bool fits_lines(std::size_t bytes, const operator_traits& by) noexcept {
  return !by.own && by.element_bytes <= line_payload &&
         bytes <= line_payload / by.element_bytes * by.element_bytes * lines_per_exchange;
}

/// Scratch of the node holds at least one element.
bool fits_slot(const surroundings& here, const operator_traits& by) noexcept {
  return by.element_bytes <= here.slot_bytes;
}

choice on_node(const surroundings& here, std::size_t bytes, const operator_traits& by) {
  if (!crowded(here)) {
    if (fits_lines(bytes, by)) return {method::node_exchange, largest_line_exchange, true};
    if (here.size <= 2) {
      // Two pieces, so that copying one overlaps with reading the other; neither so small that the flags cost
      // more than they gain, nor so large that a piece has left the cache when it is read.
      const std::size_t piece = std::clamp(std::bit_ceil(bytes) / 2, smallest_piece, largest_piece);
      return {method::node_exchange, std::min(std::max(piece, by.element_bytes), here.slot_bytes), false};
    }
    if (bytes <= largest_exchange_of_many) return {method::node_exchange, here.slot_bytes, false};
  } else {
    return {bytes <= largest_gathering(here.size) ? method::node_gathering : method::node_gathered_slices,
            here.slot_bytes, false};
  }
  return {method::node_slices, here.slot_bytes, false};
}

choice by_messages(const surroundings& here, std::size_t bytes, const operator_traits& by) {
  const double n = here.size;
  const double rounds = std::bit_width(static_cast<unsigned>(here.size - 1));
  const double size = static_cast<double>(bytes);
  const double doubling = rounds * (here.latency_ns + size * here.ns_per_byte);
  const double ring = 2 * (n - 1) * (here.latency_ns + size / n * here.ns_per_byte);
  if (doubling <= ring || !by.commutative) return {method::recursive_doubling, doubling_segment, false};
  return {method::ring, static_cast<std::size_t>(here.size) * ring_chunk, false};
}

[[noreturn]] void refuse(std::string_view variable, std::string_view value, std::string_view why) {
  throw error(errc::invalid_argument, fmt::format("{}={}: {}", variable, value, why));
}

constexpr std::string_view no_block =
    "this communicator has no shared memory of one node (its members are on several nodes, or the shm fabric "
    "is "
    "off); use another algorithm or auto";

constexpr std::string_view no_order =
    "it combines operands in another order than that of the ranks, and this operator does not commute; use "
    "another "
    "algorithm or auto";

constexpr std::string_view no_slot =
    "an element does not fit into the shared memory's scratch; use another algorithm or auto";

constexpr std::string_view no_room =
    "the blocks for so many ranks do not fit into the shared memory's scratch; use another algorithm or auto";

/// What a setting asks for: checked against what there is.
struct wish {
  std::string_view variable;
  const std::string& value;
  const surroundings& here;

  bool is(std::string_view algorithm) const { return value == algorithm; }
  /// True if the node's block serves the call; throws if it is wished for and is not there.
  bool node(bool automatic) const {
    if (value == "auto") return here.node && here.size > 1 && automatic;
    if (value != "node") refuse(variable, value, "no such algorithm of this collective");
    if (!here.node && here.size > 1) refuse(variable, value, no_block);
    return here.size > 1;
  }
};

// Thresholds of the other collectives. Through the node's scratch every byte is copied twice, by two cores; a
// message copies it once, by both ends together, and costs some microseconds before. With two ranks both meet
// near 32 KiB.
constexpr std::size_t largest_node_block = 32 << 10;
/// Everybody reads the root's scratch, so one copy in serves n - 1 copies out.
constexpr std::size_t largest_node_broadcast = 256 << 10;
/// Message algorithms over scratch: its size for all blocks together, and the largest blocks worth copying.
constexpr std::size_t block_scratch = 4 << 20;
constexpr std::size_t largest_collected_block = 4 << 10;
constexpr std::size_t largest_bruck_alltoall = 512;
constexpr std::size_t largest_binomial_broadcast = 64 << 10;
constexpr std::size_t largest_binomial_reduce = 64 << 10;

/// Of one block, if the scratch holds `cells`.
std::size_t part_of(std::size_t scratch, std::size_t cells) noexcept {
  return std::max<std::size_t>(scratch / std::max<std::size_t>(cells, 1) / line_bytes * line_bytes, 1);
}

choice gathered_or_not(const surroundings& here, method flags, method gathering, std::size_t segment) {
  return {crowded(here) ? gathering : flags, segment, false};
}

choice collect(const wish& of, const surroundings& here, std::size_t bytes, method tree, method linear,
               method flags, method gathering, std::size_t cells_in_slot) {
  const auto n = static_cast<std::size_t>(here.size);
  const choice by_tree{tree, part_of(block_scratch, n), false};
  const choice direct{linear, whole_vector, false};
  if (of.is("binomial")) return by_tree;
  if (of.is("linear")) return direct;
  if (of.is("node") && here.node && here.size > 1 && cells_in_slot * line_bytes > here.slot_bytes)
    refuse(of.variable, of.value, no_room);
  if (of.node(bytes <= largest_node_block && cells_in_slot * line_bytes <= here.slot_bytes))
    return gathered_or_not(here, flags, gathering, part_of(here.slot_bytes, cells_in_slot));
  return bytes <= largest_collected_block ? by_tree : direct;
}

}  // namespace

choice choose_allreduce(const surroundings& here, std::size_t bytes, const operator_traits& by,
                        const base::settings& forced) {
  const wish of{"VERBENA_ALLREDUCE", forced.allreduce, here};
  if (of.is("recursive_doubling"))
    return {method::recursive_doubling, std::max(doubling_segment, by.element_bytes), false};
  if (of.is("ring")) {
    if (!by.commutative && here.size > 1) refuse(of.variable, of.value, no_order);
    return {method::ring, static_cast<std::size_t>(here.size) * ring_chunk, false};
  }
  if (of.is("node") && here.node && !fits_slot(here, by)) refuse(of.variable, of.value, no_slot);
  return of.node(fits_slot(here, by)) ? on_node(here, bytes, by) : by_messages(here, bytes, by);
}

choice choose_barrier(const surroundings& here, const base::settings& forced) {
  const wish of{"VERBENA_BARRIER", forced.barrier, here};
  if (of.is("dissemination") || !of.node(true)) return {method::dissemination, 1, false};
  if (!crowded(here)) return {method::barrier_exchange, 1, true};
  return {method::barrier_gathering, 1, false};
}

choice choose_broadcast(const surroundings& here, std::size_t bytes, const base::settings& forced) {
  const wish of{"VERBENA_BROADCAST", forced.broadcast, here};
  if (of.is("binomial")) return {method::broadcast_binomial, whole_vector, false};
  if (of.is("scatter_ring")) return {method::broadcast_scatter_ring, whole_vector, false};
  if (of.node(bytes <= (here.size == 2 ? largest_node_block : largest_node_broadcast))) {
    // Two pieces or more, so that the root fills one while the others empty another.
    const std::size_t piece = std::clamp(std::bit_ceil(bytes) / 2, smallest_piece, largest_piece);
    return gathered_or_not(here, method::broadcast_node, method::broadcast_node_gathering,
                           crowded(here) ? here.slot_bytes : std::min(piece, here.slot_bytes));
  }
  if (bytes <= largest_binomial_broadcast || here.size <= 2)
    return {method::broadcast_binomial, whole_vector, false};
  return {method::broadcast_scatter_ring, whole_vector, false};
}

choice choose_reduce(const surroundings& here, std::size_t bytes, const operator_traits& by,
                     const base::settings& forced) {
  const wish of{"VERBENA_REDUCE", forced.reduce, here};
  const choice tree{method::reduce_binomial, std::max(doubling_segment, by.element_bytes), false};
  const choice ring{method::reduce_scatter_gather, static_cast<std::size_t>(here.size) * ring_chunk, false};
  if (of.is("binomial")) return tree;
  if (of.is("scatter_gather")) {
    if (!by.commutative && here.size > 1) refuse(of.variable, of.value, no_order);
    return ring;
  }
  if (of.is("node") && here.node && !fits_slot(here, by)) refuse(of.variable, of.value, no_slot);
  if (of.node(fits_slot(here, by))) {
    if (crowded(here))
      return {bytes <= largest_gathering(here.size) ? method::reduce_node_gathering
                                                    : method::reduce_node_gathered_slices,
              here.slot_bytes, false};
    if (here.size > 2 && bytes > largest_exchange_of_many)
      return {method::reduce_node_slices, here.slot_bytes, false};
    const std::size_t piece = std::clamp(std::bit_ceil(bytes) / 2, smallest_piece, largest_piece);
    return {method::reduce_node, std::min(std::max(piece, by.element_bytes), here.slot_bytes), false};
  }
  return bytes <= largest_binomial_reduce || here.size <= 2 || !by.commutative ? tree : ring;
}

choice choose_gather(const surroundings& here, std::size_t block_bytes, const base::settings& forced) {
  return collect({"VERBENA_GATHER", forced.gather, here}, here, block_bytes, method::gather_binomial,
                 method::gather_linear, method::gather_node, method::gather_node_gathering, 1);
}

choice choose_scatter(const surroundings& here, std::size_t block_bytes, const base::settings& forced) {
  return collect({"VERBENA_SCATTER", forced.scatter, here}, here, block_bytes, method::scatter_binomial,
                 method::scatter_linear, method::scatter_node, method::scatter_node_gathering,
                 static_cast<std::size_t>(here.size));
}

choice choose_allgather(const surroundings& here, std::size_t block_bytes, const base::settings& forced) {
  const wish of{"VERBENA_ALLGATHER", forced.allgather, here};
  const choice bruck{method::allgather_bruck, part_of(block_scratch, static_cast<std::size_t>(here.size)),
                     false};
  const choice ring{method::allgather_ring, whole_vector, false};
  if (of.is("bruck")) return bruck;
  if (of.is("ring")) return ring;
  if (of.node(block_bytes <= largest_node_block))
    return gathered_or_not(here, method::allgather_node, method::allgather_node_gathering, here.slot_bytes);
  return block_bytes <= largest_collected_block ? bruck : ring;
}

choice choose_alltoall(const surroundings& here, std::size_t block_bytes, bool in_place,
                       const base::settings& forced) {
  const wish of{"VERBENA_ALLTOALL", forced.alltoall, here};
  const auto n = static_cast<std::size_t>(here.size);
  const choice bruck{method::alltoall_bruck, part_of(block_scratch, 2 * n + 2), false};
  const choice pairs = in_place ? choice{method::alltoall_exchange, block_scratch, false}
                                : choice{method::alltoall_pairwise, whole_vector, false};
  if (of.is("bruck")) return bruck;
  if (of.is("pairwise")) return pairs;
  if (of.is("node") && here.node && n > 1 && n * line_bytes > here.slot_bytes)
    refuse(of.variable, of.value, no_room);
  if (of.node(block_bytes <= largest_node_block && n * line_bytes <= here.slot_bytes))
    return gathered_or_not(here, method::alltoall_node, method::alltoall_node_gathering,
                           part_of(here.slot_bytes, n));
  return block_bytes <= largest_bruck_alltoall ? bruck : pairs;
}

}  // namespace verbena::collectives
