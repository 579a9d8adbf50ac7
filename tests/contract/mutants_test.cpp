// The suite is held against fabrics that break the contract in one way each: it must see every one of them,
// with the check that is meant to. A check that no mutant can fail proves nothing.
#include "one_sided_mutants.hpp"
#include "sim_set.hpp"
#include "suite.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

using namespace verbena::contract;
using namespace verbena::contract::mutants;

namespace {

/// Room for more than a bounded poll may report, so that an unbounded one shows.
struct roomy_world {
  [[maybe_unused]] static constexpr const char* name = "sim, with mutants";
  static verbena::transport::sim::world_options options() {
    verbena::transport::sim::world_options o;
    o.window = 2000;
    o.limits.bulk = verbena::transport::bulk_method::together;
    return o;
  }
};

using all_mutants =
    std::tuple<reorders_two, drops_one, doubles_one, flips_a_bit, cuts_the_largest, changes_the_envelope,
               again_but_sent, done_but_refused, never_takes_again, calls_the_writer_twice,
               delivers_inside_send, names_the_wrong_peer, poll_from_brings_all, polls_without_end,
               poll_counts_nothing, arm_is_blind, arm_is_nervous, packets_too_small, puts_one_byte_off,
               put_is_overtaken, flag_overtakes_its_put, loses_flags, cuts_flags_to_32_bits,
               done_before_it_is_read, forgets_to_complete, completes_inside_get, adds_twice, swaps_always,
               shrugs_at_no_key, wrong_keys_succeed, regions_stay, reports_a_death_twice,
               never_reports_a_death, reports_a_death_too_early, sends_to_the_dead, takes_any_ticket,
               cannot_withdraw, withdraws_what_was_accepted,
               shares_all_but_the_last_byte>;

template <class Mutant>
std::unique_ptr<mutant> make_one(verbena::transport::sim::sim_world& world, verbena::transport::peer self) {
  return std::make_unique<Mutant>(world, self);
}

struct candidate {
  mutant_front::maker make;
  const char* caught_by;
};
template <class... Mutants>
std::vector<candidate> candidates(std::tuple<Mutants...>*) {
  return {{&make_one<Mutants>, Mutants::caught_by}...};
}

}  // namespace

TEST_CASE("a fabric that breaks the contract is found out", "[mutants]") {
  const auto checks = all_checks<sim_set<roomy_world, mutant_front>>();
  int number = 0;
  for (const candidate& c : candidates(static_cast<all_mutants*>(nullptr))) {
    mutant_front::make = c.make;
    const auto meant =
        std::find_if(checks.begin(), checks.end(), [&](const check& one) { return one.name == c.caught_by; });
    REQUIRE(meant != checks.end());
    const bool found = !meant->run().clean();
    std::string by;
    if (!found)
      for (const check& one : checks)
        if (!one.run().clean()) by += "  " + std::string(one.name) + "\n";
    INFO("mutant " << number++ << " should be caught by '" << c.caught_by << "', is caught by:\n" << by);
    CHECK(found);
  }
}

TEST_CASE("a fabric with nothing wrong passes in the mutants' world and form", "[mutants]") {
  mutant_front::make = &make_one<mutant>;
  for (const check& one : all_checks<sim_set<roomy_world, mutant_front>>()) {
    INFO(one.name);
    CHECK(one.run().text() == "");
  }
}
