#include "collectives/choose.hpp"

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

choice on_node(const surroundings& here, std::size_t bytes) {
  if (here.size <= 2 || here.size <= here.cores) {
    if (bytes <= largest_line_exchange) return {method::node_exchange, largest_line_exchange, true};
    if (here.size <= 2) {
      // Two pieces, so that copying one overlaps with reading the other; neither so small that the flags cost
      // more than they gain, nor so large that a piece has left the cache when it is read.
      const std::size_t piece = std::clamp(std::bit_ceil(bytes) / 2, smallest_piece, largest_piece);
      return {method::node_exchange, std::min(piece, here.slot_bytes), false};
    }
    if (bytes <= largest_exchange_of_many) return {method::node_exchange, here.slot_bytes, false};
  } else {
    return {bytes <= largest_gathering(here.size) ? method::node_gathering : method::node_gathered_slices,
            here.slot_bytes, false};
  }
  return {method::node_slices, here.slot_bytes, false};
}

choice by_messages(const surroundings& here, std::size_t bytes) {
  const double n = here.size;
  const double rounds = std::bit_width(static_cast<unsigned>(here.size - 1));
  const double size = static_cast<double>(bytes);
  const double doubling = rounds * (here.latency_ns + size * here.ns_per_byte);
  const double ring = 2 * (n - 1) * (here.latency_ns + size / n * here.ns_per_byte);
  if (doubling <= ring) return {method::recursive_doubling, doubling_segment, false};
  return {method::ring, static_cast<std::size_t>(here.size) * ring_chunk, false};
}

[[noreturn]] void refuse(std::string_view variable, std::string_view value, std::string_view why) {
  throw error(errc::invalid_argument, fmt::format("{}={}: {}", variable, value, why));
}

constexpr std::string_view no_block =
    "this communicator has no shared memory of one node (its members are on several nodes, or the shm fabric "
    "is "
    "off); use another algorithm or auto";

}  // namespace

std::string_view name(method m) noexcept {
  constexpr std::string_view names[methods] = {
      "recursive_doubling", "ring",          "node (exchange)", "node (slices)",   "node (gathered slices)",
      "node (gathering)",   "dissemination", "node (exchange)", "node (gathering)"};
  return names[static_cast<std::size_t>(m)];
}

choice choose_allreduce(const surroundings& here, std::size_t bytes, const base::settings& forced) {
  if (forced.allreduce == "recursive_doubling") return {method::recursive_doubling, doubling_segment, false};
  if (forced.allreduce == "ring")
    return {method::ring, static_cast<std::size_t>(here.size) * ring_chunk, false};
  if (forced.allreduce == "node" && !here.node && here.size > 1)
    refuse("VERBENA_ALLREDUCE", forced.allreduce, no_block);
  if (forced.allreduce != "node" && forced.allreduce != "auto")
    refuse("VERBENA_ALLREDUCE", forced.allreduce, "no such algorithm of all-reduce");
  return here.node ? on_node(here, bytes) : by_messages(here, bytes);
}

choice choose_barrier(const surroundings& here, const base::settings& forced) {
  if (forced.barrier == "dissemination") return {method::dissemination, 1, false};
  if (forced.barrier == "node" && !here.node && here.size > 1)
    refuse("VERBENA_BARRIER", forced.barrier, no_block);
  if (forced.barrier != "node" && forced.barrier != "auto")
    refuse("VERBENA_BARRIER", forced.barrier, "no such algorithm of the barrier");
  if (!here.node) return {method::dissemination, 1, false};
  if (here.size <= 2 || here.size <= here.cores) return {method::barrier_exchange, 1, true};
  return {method::barrier_gathering, 1, false};
}

}  // namespace verbena::collectives
