// What a simulated world is like, and what it counts. Plain values: a world is made from them and a seed, and
// two worlds made alike behave alike.
#pragma once

#include "base/clock.hpp"
#include "transport/fabric.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace verbena::transport::sim {

/// A time in which nothing passes between some endpoints; then their sessions resume.
struct outage {
  static constexpr std::uint32_t everybody = UINT32_MAX;
  base::nanoseconds from = 0, until = 0;  ///< virtual; none if they are equal
  std::uint32_t one = everybody, other = everybody;

  bool covers(std::uint32_t a, std::uint32_t b) const noexcept {
    auto meets = [](std::uint32_t who, std::uint32_t end) { return end == everybody || end == who; };
    return (meets(a, one) && meets(b, other)) || (meets(b, one) && meets(a, other));
  }
};

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

  // The links. Any of these puts a session between the endpoints (transport/session); one-sided operations are
  // not lost, as on a reliable queue pair, but they do end with an outage.
  bool session = false;             ///< one even over perfect links
  std::uint32_t loss_ppm = 0;       ///< a packet, or an answer of the session, is lost; at most 500,000
  std::uint32_t duplicate_ppm = 0;  ///< it arrives twice
  std::uint32_t reorder_ppm = 0;    ///< it is held up, and later ones pass
  outage link_outage;

  // Planted faults: with one of them the tests must fail.
  bool reorder_one = false;  ///< one packet is delivered before the one that the same sender sent it before
  bool drop_ack = false;     ///< an acknowledgement is sometimes taken for one of everything sent so far

  bool has_session() const noexcept {
    return session || loss_ppm != 0 || duplicate_ppm != 0 || reorder_ppm != 0 ||
           link_outage.until > link_outage.from;
  }
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
  lost,
  duplicated,
  reordered,
  retransmitted,
  duplicates_dropped,
  early_dropped,
  stale_dropped,
  acks,
  outages,
  resumes,
  replayed_one_sided,
  outcomes_unknown,
  links_given_up,
  count_
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(counter::count_)> counter_names = {
    "packets",
    "packet_bytes",
    "puts",
    "put_bytes",
    "flags",
    "gets",
    "atomics",
    "regions",
    "shared",
    "again_full",
    "again_by_chance",
    "regions_refused",
    "keys_refused",
    "deaths",
    "lost_with_the_dead",
    "torn_puts",
    "peer_downs",
    "lost",
    "duplicated",
    "reordered",
    "retransmitted",
    "duplicates_dropped",
    "early_dropped",
    "stale_dropped",
    "acks",
    "outages",
    "resumes",
    "replayed_one_sided",
    "outcomes_unknown",
    "links_given_up"};

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
