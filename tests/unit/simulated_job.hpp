// Contexts over one simulated world, without threads: whoever uses it turns everybody and sees every order of
// posting.
#pragma once

#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace verbena::tests {

namespace sim = verbena::transport::sim;
using runtime::operation;
using runtime::peer;

struct simulated_job {
  explicit simulated_job(const sim::world_options& options, const base::settings& settings = {})
      : world(options), job(options.size, false) {
    for (std::uint32_t r = 0; r < options.size; ++r)
      contexts.push_back(runtime::context_state::join(job.member(r), settings,
                                                      std::make_unique<sim::sim_fabric>(world, peer{r})));
  }
  /// Turns everybody until nothing happens any more.
  void run() {
    for (int quiet = 0; quiet < 3;) {
      bool moved = false;
      for (auto& c : contexts) moved |= c->progress(world.now());
      moved |= world.step();
      quiet = moved ? 0 : quiet + 1;
    }
  }
  void send(operation& op, std::uint32_t from, std::uint32_t to, const std::vector<std::byte>& data,
            int label) {
    contexts[from]->engine().send(op, contexts[from]->world().way_to(rank{to}), data.data(), data.size(),
                                  tag{label});
  }
  void receive(operation& op, std::uint32_t at, rank from, std::vector<std::byte>& data, tag label) {
    runtime::communicator_state& on = contexts[at]->world();
    const peer source = from == any_source ? peer{} : on.peer_of(from);
    contexts[at]->engine().receive(op, from == any_source ? nullptr : &source, {on.context(), from, label},
                                   data.data(), data.size());
  }

  sim::sim_world world;
  runtime::in_process_job job;
  std::vector<std::unique_ptr<runtime::context_state>> contexts;
};

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 131 + seed);
  return data;
}

inline sim::world_options world_of(transport::bulk_method bulk, std::size_t packet, std::size_t eager) {
  sim::world_options o;
  o.limits.packet_bytes = packet;
  o.limits.eager_bytes = eager;
  o.limits.bulk = bulk;
  return o;
}

}  // namespace verbena::tests
