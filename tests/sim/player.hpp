// Plays a program: one context per rank over one simulated world, all in this thread, until all lists are played. A
// random program ties knots: ranks that wait for each other, or for a message that another receive took. When nothing
// moves any more, one of those who wait gets a message, or a receive, that the list does not have. Then the end is put in
// order: unmatched receives are taken back, what nobody asked for is received, and what still has not ended never will.
#pragma once

#include "tests/sim/program.hpp"
#include "tests/sim/tally.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::sim_tests {

struct verdict {
  std::vector<std::string> complaints;
  tally counted;
  std::uint64_t fingerprint = 0;  ///< of everything observed: equal for equal seeds
};

/// Faults that nothing below or above may have: with one of them the oracle must complain about some programs.
enum class plant : std::uint8_t {
  none,
  lose_grant,  ///< one report of free budget does not reach its sender
  stale_context,  ///< a message of a communicator that was freed counts as one of its successor in the same place
};

verdict play(const program& p, plant fault = plant::none);

}  // namespace verbena::sim_tests
