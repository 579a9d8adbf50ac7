#include "tests/sim/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace verbena::sim_tests {
namespace {

using transport::bulk_method;

template <class Value, std::size_t Count>
Value one_of(random_source& random, const Value (&values)[Count]) {
  return values[random.below(Count)];
}

transport::sim::world_options make_world(random_source& random, std::uint64_t seed) {
  transport::sim::world_options w;
  w.seed = seed;
  w.size = random.between(2, 6);
  w.limits.packet_bytes = one_of<std::size_t>(random, {240, 256, 1000, 4096, 8192});
  w.limits.eager_bytes = one_of<std::size_t>(random, {1, 64, 240, 1000, 4096, 20'000});
  w.limits.inline_bytes = 40;
  w.limits.bulk =
      one_of(random, {bulk_method::put, bulk_method::put, bulk_method::stream, bulk_method::together});
  w.limits.native_put = w.limits.bulk == bulk_method::put || random.below(2) == 0;
  w.limits.latency_us = one_of(random, {0.0F, 0.1F, 1.0F, 30.0F});
  w.jitter = one_of<base::nanoseconds>(random, {0, 300, 5000, 50'000});
  w.window = one_of<std::uint32_t>(random, {1, 2, 5, 64});
  w.events_per_poll = one_of<std::uint32_t>(random, {1, 3, 16});
  w.ragged_polls = random.below(2) == 0;
  w.again_ppm = one_of<std::uint32_t>(random, {0, 20'000, 300'000});
  w.refuse_region_ppm = one_of<std::uint32_t>(random, {0, 100'000, 600'000});
  w.completes_at_once_ppm = one_of<std::uint32_t>(random, {0, 500'000});
  return w;
}

std::size_t make_size(random_source& random, const program& p) {
  const std::size_t eager = p.eager_override != 0 ? p.eager_override : p.world.limits.eager_bytes;
  const auto packet = static_cast<std::uint32_t>(p.world.limits.packet_bytes);
  switch (random.below(6)) {
    case 0:
      return random.below(20);
    case 1:
      return random.below(packet) + random.below(3);
    case 2:  // around the border of eager and rendezvous
      return std::max<std::size_t>(eager + random.below(5), 2) - 2;
    case 3:
      return packet * random.between(1, 4) + random.below(3) - 1;
    case 4:
      return random.below(static_cast<std::uint32_t>(5 * eager + 10));
    default:
      return random.below(60'000);
  }
}

}  // namespace

program make_program(std::uint64_t seed) {
  random_source random(seed);
  program p;
  p.seed = seed;
  p.world = make_world(random, random.next());
  if (random.below(4) == 0) p.eager_override = one_of<std::size_t>(random, {10, 500, 9000});
  const std::uint32_t ranks = p.world.size;
  p.of.resize(ranks);

  // Sizes differ within a pair, so that source and size name a message whatever arrives of its contents.
  std::vector<std::set<std::size_t>> used(std::size_t{ranks} * ranks);
  const std::uint32_t messages = random.between(5, 90);
  const std::uint32_t tags = random.between(1, 4);
  struct rough {
    std::uint32_t rank;
    action a;
  };
  std::vector<rough> all;
  for (std::uint32_t i = 0; i < messages; ++i) {
    const std::uint32_t from = random.below(ranks), to = random.below(ranks);
    std::size_t size = make_size(random, p);
    while (!used[from * ranks + to].insert(size).second) ++size;
    const auto label = static_cast<std::int32_t>(random.below(tags));
    all.push_back({from, {action::kind::send, static_cast<std::int32_t>(to), label, size}});
    if (random.below(12) == 0) continue;  // nobody asks for it: the end must
    action r{action::kind::receive, static_cast<std::int32_t>(from), label, size};
    if (random.below(4) == 0) r.partner = -1;
    if (random.below(4) == 0) r.label = -1;
    if (random.below(5) == 0) r.size = random.below(static_cast<std::uint32_t>(size) + 1);
    if (random.below(3) == 0) r.size += random.below(100'000);
    all.push_back({to, r});
  }
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[random.below(static_cast<std::uint32_t>(i))]);
  for (const rough& r : all) p.of[r.rank].push_back(r.a);

  // Collectives stand anywhere in each rank's list, in the same order everywhere.
  std::vector<std::size_t> at(ranks, 0);
  for (std::uint32_t i = random.below(4); i > 0; --i) {
    action c;
    c.what = random.below(3) == 0 ? action::kind::barrier : action::kind::allreduce;
    c.size = random.between(1, 3000);
    c.ring = random.below(2) == 0;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      auto& list = p.of[r];
      at[r] += random.below(static_cast<std::uint32_t>(list.size() - at[r]) + 1);
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(at[r]++), c);
    }
  }
  if (random.below(4) == 0) {
    p.victim = random.below(ranks);
    p.death_ns = random.below(random.below(2) == 0 ? 10'000 : 400'000);
  }
  return p;
}

std::string program::summary() const {
  static constexpr const char* methods[] = {"put", "together", "stream"};
  std::size_t actions = 0;
  for (const auto& list : of) actions += list.size();
  return fmt::format(
      "seed {}: {} ranks, {} actions, packets {}, eager {} (override {}), bulk {}, native put {}, latency {} "
      "us, "
      "jitter {} ns, window {}, {} events a poll, again {} ppm, regions refused {} ppm{}",
      seed, world.size, actions, world.limits.packet_bytes, world.limits.eager_bytes, eager_override,
      methods[static_cast<std::size_t>(world.limits.bulk)], world.limits.native_put, world.limits.latency_us,
      world.jitter, world.window, world.events_per_poll, world.again_ppm, world.refuse_region_ppm,
      victim ? fmt::format(", rank {} dies at {} ns", *victim, death_ns) : "");
}

}  // namespace verbena::sim_tests
