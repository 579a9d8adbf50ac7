// What a simulated world is like, and what it counts. Plain values: a world is made from them and a seed, and
// two worlds made alike behave alike.
#pragma once

#include "base/clock.hpp"
#include "transport/fabric.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace verbena::transport::sim {

struct world_options {
  std::uint64_t seed = 1;
  std::uint32_t size = 2;  ///< endpoints

  /// Of every way between two endpoints. Latency and bandwidth price the virtual time.
  peer_limits limits = {.packet_bytes = 4096,
                        .inline_bytes = 40,
                        .eager_bytes = 4096,
                        .bulk = bulk_method::put,
                        .native_put = true,
                        .native_atomics = true,
                        .latency_us = 1,
                        .bandwidth_gbs = 10};

  /// Packets and one-sided operations one endpoint may have under way to one peer; beyond: `again`, until
  /// that peer polls.
  std::uint32_t window = 64;
  std::uint32_t events_per_poll = 16;

  // Chance and faults.
  base::nanoseconds jitter = 0;             ///< added to each delay, 0 to this much
  bool ragged_polls = false;                ///< a poll reports 1 to events_per_poll events, not all there are
  std::uint32_t again_ppm = 0;              ///< a post is refused although there is room; at most 900,000
  std::uint32_t refuse_region_ppm = 0;      ///< a registration is refused
  std::uint32_t completes_at_once_ppm = 0;  ///< a small put is copied and `done` instead of `pending`
};

enum class counter : std::uint8_t {
  packets,
  packet_bytes,
  puts,
  put_bytes,
  flags,
  gets,
  atomics,
  regions,
  shared,
  again_full,
  again_by_chance,
  regions_refused,
  keys_refused,
  deaths,
  lost_with_the_dead,
  torn_puts,
  peer_downs,
  count_
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(counter::count_)> counter_names = {
    "packets",      "packet_bytes",    "puts",
    "put_bytes",    "flags",           "gets",
    "atomics",      "regions",         "shared",
    "again_full",   "again_by_chance", "regions_refused",
    "keys_refused", "deaths",          "lost_with_the_dead",
    "torn_puts",    "peer_downs"};

class counters {
 public:
  void add(counter which, std::uint64_t amount = 1) noexcept {
    values_[static_cast<std::size_t>(which)] += amount;
  }
  std::uint64_t operator[](counter which) const noexcept { return values_[static_cast<std::size_t>(which)]; }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(counter::count_)> values_{};
};

}  // namespace verbena::transport::sim
