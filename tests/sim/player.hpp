// Plays a program: one context per rank over one simulated world, all in this thread, until nothing moves any
// more. Then the end is put in order: unmatched receives are taken back, what nobody asked for is received,
// and what still has not ended never will.
#pragma once

#include "tests/sim/observed.hpp"
#include "tests/sim/program.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace verbena::sim_tests {

/// What a run had of each, by name; printed, so that a run that tested nothing shows.
struct tally {
  std::uint64_t sends = 0, receives = 0, any_source = 0, any_tag = 0, truncated = 0, selves = 0,
                cancelled = 0, barriers = 0, allreduces = 0, failed = 0, steps = 0;
  transport::sim::counters world;
  void add(const tally& other);
  std::string text() const;
};

struct verdict {
  std::vector<std::string> complaints;
  tally counted;
  std::uint64_t fingerprint = 0;  ///< of everything observed: equal for equal seeds
};

verdict play(const program& p);

}  // namespace verbena::sim_tests
