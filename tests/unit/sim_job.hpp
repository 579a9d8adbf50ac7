// Whole contexts over a simulated world, in one thread: the test starts operations and turns everybody until
// nothing moves any more.
#pragma once

#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <memory>
#include <vector>

namespace verbena::tests {

struct sim_job {
  explicit sim_job(const transport::sim::world_options& options, const base::settings& settings = {})
      : world(options), job(options.size, false) {
    for (std::uint32_t r = 0; r < options.size; ++r)
      contexts.push_back(runtime::context_state::join(
          job.member(r), settings, std::make_unique<transport::sim::sim_fabric>(world, transport::peer{r})));
  }
  void run() {
    for (int quiet = 0; quiet < 3;) {
      bool moved = false;
      for (std::uint32_t r = 0; r < contexts.size(); ++r)
        if (contexts[r] != nullptr && world.alive(transport::peer{r}))
          moved |= contexts[r]->progress(world.now());
      moved |= world.step();
      quiet = moved ? 0 : quiet + 1;
    }
  }
  runtime::context_state& operator[](std::size_t r) { return *contexts[r]; }

  transport::sim::sim_world world;
  runtime::in_process_job job;
  std::vector<std::unique_ptr<runtime::context_state>> contexts;
};

}  // namespace verbena::tests
