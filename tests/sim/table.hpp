// What the ranks of one simulated job have in common: the program, the world they live in, what they have shown so far,
// and the models that say what must come of it. Nothing here is a way for ranks to reach each other.
#pragma once

#include "runtime/bootstrap/in_process.hpp"
#include "tests/sim/access_model.hpp"
#include "tests/sim/observed.hpp"
#include "tests/sim/program.hpp"
#include "tests/sim/tally.hpp"
#include "transport/sim/sim_world.hpp"

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace verbena::sim_tests {

using transport::peer;

struct table {
  explicit table(const program& of)
      : p(of), random(of.seed ^ 0x5eedULL), world(of.world), job(of.world.size, false) {
    seen.resize(p.groups.size());
    sequences.resize(p.groups.size());
    for (std::uint32_t g = 0; g < p.groups.size(); ++g) {
      const std::size_t n = p.groups[g].members.size();
      seen[g].group = g;
      seen[g].receives.resize(n);
      seen[g].sends.resize(n);
      sequences[g].resize(n * n);
    }
    for (std::uint32_t w = 0; w < p.windows.size(); ++w)
      windows.emplace_back(p.windows[w], w, p.groups[p.windows[w].on].members.size());
    flags.resize(std::size_t{p.world.size} * p.world.size);
  }

  bool alive(std::uint32_t job_rank) const noexcept { return world.alive(peer{job_rank}); }
  /// The victim, once it is dead.
  std::optional<std::uint32_t> dead() const noexcept {
    return p.victim && !alive(*p.victim) ? p.victim : std::nullopt;
  }
  bool dead_in(std::uint32_t in) const noexcept { return dead() && p.groups[in].rank_of(*dead()); }

  template <class... Args>
  void complain(std::uint32_t job_rank, fmt::format_string<Args...> text, Args&&... args) {
    complaints.push_back(
        fmt::format("rank {}: {}", job_rank, fmt::format(text, std::forward<Args>(args)...)));
  }

  const program& p;
  random_source random;
  transport::sim::sim_world world;
  runtime::in_process_job job;
  tally counted;
  std::vector<std::string> complaints;
  bool at_end = false;  ///< all lists have been played

  std::vector<observed> seen;                         ///< by communicator
  std::vector<std::vector<std::uint64_t>> sequences;  ///< messages so far, by communicator, [from * n + to]
  std::vector<window_model> windows;
  /// Puts with a flag whose word nobody has taken, by [origin * ranks + target] of the job.
  std::vector<std::deque<flagged_put>> flags;
  std::uint64_t words = 0;  ///< flags so far: each has a word of its own
};

}  // namespace verbena::sim_tests
