// Simulated endpoints for the contract suite, in several worlds: a calm one, one with every nuisance, one
// without one-sided access, one with tiny packets. `Fabric` is sim_fabric or a mutant of it.
#pragma once

#include "fabric_set.hpp"
#include "transport/sim/sim_fabric.hpp"

#include <memory>
#include <vector>

namespace verbena::contract {

struct calm_world {
  static constexpr const char* name = "sim";
  static transport::sim::world_options options() { return {}; }
};

struct rough_world {
  static constexpr const char* name = "sim, rough";
  static transport::sim::world_options options() {
    transport::sim::world_options o;
    o.seed = 7;
    o.jitter = 5 * base::microsecond;
    o.again_ppm = 200'000;
    o.refuse_region_ppm = 200'000;
    o.completes_at_once_ppm = 300'000;
    o.ragged_polls = true;
    o.window = 7;
    return o;
  }
};

struct streaming_world {
  static constexpr const char* name = "sim, streams only";
  static transport::sim::world_options options() {
    transport::sim::world_options o;
    o.limits.bulk = transport::bulk_method::stream;
    o.limits.native_put = false;
    o.limits.native_atomics = false;
    return o;
  }
};

struct tiny_world {
  static constexpr const char* name = "sim, smallest packets";
  static transport::sim::world_options options() {
    transport::sim::world_options o;
    o.limits.packet_bytes = transport::control_packet_bytes - sizeof(transport::envelope);
    o.limits.eager_bytes = 100;
    o.limits.inline_bytes = 0;
    o.limits.bulk = transport::bulk_method::together;
    o.window = 2;
    o.events_per_poll = 1;
    o.jitter = 1000;
    return o;
  }
};

/// Links that lose a tenth of everything.
struct lossy_world {
  static constexpr const char* name = "sim, lossy links";
  static transport::sim::world_options options() {
    transport::sim::world_options o;
    o.seed = 11;
    o.jitter = 2 * base::microsecond;
    o.window = 16;
    o.loss_ppm = 100'000;
    o.duplicate_ppm = 50'000;
    o.reorder_ppm = 100'000;
    o.completes_at_once_ppm = 300'000;
    return o;
  }
};

template <class World, class Fabric = transport::sim::sim_fabric>
class sim_set {
 public:
  using fabric_type = Fabric;
  static constexpr const char* name = World::name;
  static constexpr std::uint32_t most = 64;
  static constexpr int quiet_rounds = 3;
  static constexpr bool can_kill = true;

  explicit sim_set(std::uint32_t size) : world_(options(size)) {
    for (std::uint32_t i = 0; i < size; ++i)
      fabrics_.push_back(std::make_unique<Fabric>(world_, transport::peer{i}));
  }
  Fabric& fabric(std::uint32_t i) { return *fabrics_[i]; }
  void kill(std::uint32_t i) { world_.kill(transport::peer{i}); }
  bool pass_time() { return world_.step(); }
  base::nanoseconds now() { return world_.now(); }
  transport::sim::sim_world& world() { return world_; }

 private:
  static transport::sim::world_options options(std::uint32_t size) {
    transport::sim::world_options o = World::options();
    o.size = size;
    return o;
  }

  transport::sim::sim_world world_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};
static_assert(fabric_set<sim_set<calm_world>>);

/// All links break again and again, up to a number of times, so that every wait has an end.
class breaking_set : public sim_set<lossy_world> {
 public:
  static constexpr const char* name = "sim, breaking links";
  using sim_set::sim_set;

  bool pass_time() {
    constexpr int most_breaks = 40;
    if (breaks_ < most_breaks && ++steps_ % 60 == 20) {
      ++breaks_;
      world().break_links({0, now() + (1 + breaks_ % 5) * 10 * base::microsecond});
    }
    return sim_set::pass_time();
  }

 private:
  int breaks_ = 0, steps_ = 0;
};
static_assert(fabric_set<breaking_set>);

}  // namespace verbena::contract
