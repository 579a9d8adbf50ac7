// Which algorithm serves a call: pure functions of what all members know alike, so that all choose alike.
// Knows no communicator; the reasons for the thresholds stand here and are printed by --explain.
#pragma once

#include "base/settings.hpp"

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
};
inline constexpr std::size_t methods = 9;

std::string_view name(method m) noexcept;

struct choice {
  method how = method::recursive_doubling;
  std::size_t segment_bytes = 0;  ///< per repetition, at most
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

/// Throws error{invalid_argument} if the settings force what these surroundings do not have.
choice choose_allreduce(const surroundings& here, std::size_t bytes, const base::settings& forced);
choice choose_barrier(const surroundings& here, const base::settings& forced);

}  // namespace verbena::collectives
