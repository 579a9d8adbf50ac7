// What runs had of each call, of what came of it, and of each fault: printed, so that a run that tested nothing shows.
#pragma once

#include "tests/sim/program.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::sim_tests {

enum class event : std::uint8_t {
  any_source,
  any_tag,
  to_self,
  zero_bytes,
  truncated,
  withdrawn,      ///< a cancel that came in time
  not_withdrawn,  ///< one that did not
  left_alone,     ///< receives that nobody sent for
  blocking,       ///< collectives by form
  started,
  persistent,
  in_place,
  custom_operator,
  forced_algorithms,  ///< programs with
  communicators,      ///< made, counted at each member
  ids_used_again,     ///< of those, in a slot that an older one had
  late_messages,      ///< dropped: their communicator was freed
  eager,
  rendezvous,
  grants,
  access_refused,   ///< with the key of a region that was gone
  swapped,          ///< compare_swaps that changed the word
  knots,            ///< untied: by a message or a receive that the program had not
  failed,           ///< calls that a death ended
  finished_anyway,  ///< collectives that were right in spite of a death
  hung_by_death,    ///< waits for somebody who had given up after a death and was not to be told
  count_
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(event::count_)> event_names = {
    "any_source",
    "any_tag",
    "self",
    "zero_bytes",
    "truncated",
    "withdrawn",
    "not_withdrawn",
    "left_alone",
    "blocking",
    "started",
    "persistent",
    "in_place",
    "custom_operator",
    "forced_algorithms",
    "communicators",
    "ids_used_again",
    "late_messages",
    "eager",
    "rendezvous",
    "grants",
    "access_refused",
    "swapped",
    "knots",
    "failed",
    "finished_anyway",
    "hung_by_death"};

struct tally {
  std::array<std::uint64_t, static_cast<std::size_t>(call::count_)> calls{};
  std::array<std::uint64_t, static_cast<std::size_t>(event::count_)> events{};
  std::uint64_t steps = 0;
  transport::sim::counters world;

  void note(call what) noexcept { ++calls[static_cast<std::size_t>(what)]; }
  void note(event what, std::uint64_t times = 1) noexcept { events[static_cast<std::size_t>(what)] += times; }
  void note_if(bool so, event what) noexcept { note(what, so ? 1 : 0); }

  void add(const tally& other);
  std::string text() const;
  /// Names of what there was none of. hung_by_death need not be, nor links_given_up: links
  /// recover here.
  std::vector<std::string> missing() const;
};

}  // namespace verbena::sim_tests
