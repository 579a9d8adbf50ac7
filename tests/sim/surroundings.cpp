#include "tests/sim/program.hpp"

#include <fmt/format.h>

namespace verbena::sim_tests {

using transport::bulk_method;

void make_surroundings(program& p, random_source& random) {
  transport::sim::world_options& w = p.world;
  w.seed = random.next();
  w.size = random.between(2, 6);
  w.limits.packet_bytes = one_of<std::size_t>(random, {240, 256, 1000, 4096, 8192});
  w.limits.eager_bytes = one_of<std::size_t>(random, {1, 64, 240, 1000, 4096, 20'000});
  w.limits.inline_bytes = 40;
  w.limits.bulk =
      one_of(random, {bulk_method::put, bulk_method::put, bulk_method::stream, bulk_method::together});
  w.limits.native_put = w.limits.bulk == bulk_method::put || chance(random, 2);
  w.limits.native_atomics = w.limits.native_put && chance(random, 2);
  w.limits.latency_us = one_of(random, {0.0F, 0.1F, 1.0F, 30.0F});
  w.jitter = one_of<base::nanoseconds>(random, {0, 300, 5000, 50'000});
  w.window = one_of<std::uint32_t>(random, {1, 2, 5, 64});
  w.events_per_poll = one_of<std::uint32_t>(random, {1, 3, 16});
  w.ragged_polls = chance(random, 2);
  w.again_ppm = one_of<std::uint32_t>(random, {0, 20'000, 300'000});
  w.refuse_region_ppm = one_of<std::uint32_t>(random, {0, 100'000, 600'000});
  w.completes_at_once_ppm = one_of<std::uint32_t>(random, {0, 500'000});

  if (chance(random, 2)) {  // bad links, and a session over them
    w.session = chance(random, 4);
    w.loss_ppm = one_of<std::uint32_t>(random, {0, 10'000, 100'000});
    w.duplicate_ppm = one_of<std::uint32_t>(random, {0, 50'000});
    w.reorder_ppm = one_of<std::uint32_t>(random, {0, 50'000, 300'000});
    if (chance(random, 2)) {
      w.link_outage.from = random.below(one_of<std::uint32_t>(random, {20'000, 60'000, 200'000, 2'000'000}));
      w.link_outage.until = w.link_outage.from + 1 + random.below(300'000);
      if (chance(random, 2)) w.link_outage.one = random.below(w.size);
      if (chance(random, 2)) w.limits.native_put = w.limits.native_atomics = true;
    }
  }

  base::settings& s = p.settings;
  s.spin_us = 0;
  s.slow_wait_s = 0;
  if (chance(random, 4)) s.eager_limit = one_of<std::uint64_t>(random, {10, 500, 9000});
  s.unexpected_budget = one_of<std::uint64_t>(random, {4 << 20, 4 << 20, 20'000, 3000, 600});
  if (!chance(random, 3)) {
    s.allreduce = one_of(random, {"auto", "recursive_doubling", "ring"});
    s.broadcast = one_of(random, {"auto", "binomial", "scatter_ring"});
    s.reduce = one_of(random, {"auto", "binomial", "scatter_gather"});
    s.gather = one_of(random, {"auto", "binomial", "linear"});
    s.scatter = one_of(random, {"auto", "binomial", "linear"});
    s.allgather = one_of(random, {"auto", "bruck", "ring"});
    s.alltoall = one_of(random, {"auto", "bruck", "pairwise"});
  }
  if (chance(random, 4)) {
    p.victim = random.below(w.size);
    p.death_ns = random.below(one_of<std::uint32_t>(random, {10'000, 60'000, 400'000, 3'000'000}));
    if (w.limits.bulk == bulk_method::put && chance(random, 2)) p.death_put = random.between(1, 20);
  }
}

std::string program::summary() const {
  static constexpr const char* methods[] = {"put", "together", "stream"};
  std::size_t actions = 0;
  for (const auto& list : of) actions += list.size();
  return fmt::format(
      "seed {}: {} ranks, {} calls, {} communicators, {} collectives, {} windows, packets {}, eager {} "
      "(override {}), "
      "budget {}, bulk {}, native put {}, atomics {}, latency {} us, jitter {} ns, window {}, {} events a "
      "poll, again {} "
      "ppm, regions refused {} ppm{}",
      seed, world.size, actions, groups.size(), collectives.size(), windows.size(), world.limits.packet_bytes,
      world.limits.eager_bytes, settings.eager_limit, settings.unexpected_budget,
      methods[static_cast<std::size_t>(world.limits.bulk)], world.limits.native_put,
      world.limits.native_atomics, world.limits.latency_us, world.jitter, world.window, world.events_per_poll,
      world.again_ppm, world.refuse_region_ppm,
      !victim          ? std::string{}
      : death_put != 0 ? fmt::format(", rank {} dies at put {}", *victim, death_put)
                       : fmt::format(", rank {} dies at {} ns", *victim, death_ns));
}

}  // namespace verbena::sim_tests
