// What a context counts, one table of rows (name, text): `context::counters()`, VERBENA_STATS=1 and the tests read it.
// Plain integers, one writer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace verbena::runtime {

struct counters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t eager_sent = 0;
  std::uint64_t rendezvous_sent = 0;
  std::uint64_t unexpected = 0;
  std::uint64_t refused = 0;
  std::uint64_t over_budget = 0;
  std::uint64_t kept = 0;
  std::uint64_t grants = 0;
  std::uint64_t malformed = 0;
  std::uint64_t stale = 0;
  std::uint64_t one_sided = 0;
  std::uint64_t registrations_found = 0;
  std::uint64_t registrations_made = 0;
  std::uint64_t registrations_evicted = 0;
};

struct counter_row {
  std::string_view name;
  std::uint64_t counters::*value;
  std::string_view text;
};

std::span<const counter_row> counter_rows() noexcept;

}  // namespace verbena::runtime
