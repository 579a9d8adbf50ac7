// Random programs over simulated worlds with every kind of trouble, judged by the sequential models.
// VERBENA_SIM_SEED=n plays seed n alone; VERBENA_SIM_SEEDS=n plays n seeds from 1 on instead of the usual number.
#include "tests/sim/player.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>

using namespace verbena;
using namespace verbena::sim_tests;

namespace {

constexpr std::uint64_t usual_seeds = 1000;  // fewer have none of the rarest faults

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("random programs do what the sequential model says", "[sim]") {
  const std::uint64_t alone = number_from("VERBENA_SIM_SEED", 0);
  const std::uint64_t first = alone != 0 ? alone : 1;
  const std::uint64_t last = alone != 0 ? alone : number_from("VERBENA_SIM_SEEDS", usual_seeds);
  tally all;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const program p = make_program(seed);
    if (alone != 0) std::printf("%s\n", p.summary().c_str());
    const verdict v = play(p);
    all.add(v.counted);
    std::string text;
    for (const std::string& line : v.complaints) text += "  " + line + "\n";
    INFO(p.summary() << "\n" << text << "replay: VERBENA_SIM_SEED=" << seed << " sim_tests");
    CHECK(v.complaints.empty());
  }
  std::printf("sim: seeds %llu to %llu: %s\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(last), all.text().c_str());
  if (alone != 0) return;
  // A run that had none of something has proven nothing about it.
  for (const std::string& name : all.missing()) FAIL_CHECK("there was no " << name);
}

TEST_CASE("a seed repeats itself", "[sim]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const program p = make_program(seed);
    INFO(p.summary());
    CHECK(play(p).fingerprint == play(p).fingerprint);
  }
}
