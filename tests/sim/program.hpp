// Random programs for simulated ranks: each rank starts a list of non-blocking operations. All that is random
// comes from one seed, so the seed is the program. It must not know the engine.
#pragma once

#include "transport/sim/options.hpp"
#include "transport/sim/random.hpp"

#include <verbena/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace verbena::sim_tests {

using transport::sim::random_source;

struct action {
  enum class kind : std::uint8_t { send, receive, barrier, allreduce };
  kind what = kind::send;
  std::int32_t partner = -1;  ///< send: to whom; receive: from whom, -1 any
  std::int32_t label = 0;     ///< receive: -1 any
  std::size_t size = 0;       ///< send: of the message; receive: of the buffer; allreduce: elements
  bool ring = false;          ///< allreduce: by the ring
};

/// A seed's worth of trouble: the world, the faults, and what each rank does in it.
struct program {
  std::uint64_t seed = 0;
  transport::sim::world_options world;
  std::size_t eager_override = 0;
  std::vector<std::vector<action>> of;  ///< by rank
  std::optional<std::uint32_t> victim;  ///< this rank dies ...
  std::int64_t death_ns = 0;            ///< ... then
  std::string summary() const;
};

program make_program(std::uint64_t seed);

/// Byte `at` of the message that is number `sequence` from `from` to `to`.
inline std::byte content(std::uint32_t from, std::uint32_t to, std::uint64_t sequence, std::size_t at) {
  const std::uint64_t mixed = (from * 1'000'003ULL + to * 10'007ULL + sequence + 1) * 0x9e3779b97f4a7c15ULL +
                              at * 0x2545f4914f6cdd1dULL;
  return static_cast<std::byte>(mixed >> 56 ^ mixed >> 23);
}

}  // namespace verbena::sim_tests
