// Faults that are planted on purpose: among the first 200 seeds the ordinary oracle finds one with each, and finds it
// again when that seed is played alone.
#include "tests/sim/player.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>

using namespace verbena;
using namespace verbena::sim_tests;

namespace {

using judged = std::function<verdict(std::uint64_t)>;

/// The first seed that fails; 0 if none does.
std::uint64_t first_failure(const judged& play_seed) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    if (!play_seed(seed).complaints.empty()) return seed;
  return 0;
}

void must_be_found(const char* name, const judged& play_seed) {
  const std::uint64_t seed = first_failure(play_seed);
  INFO(name);
  REQUIRE(seed != 0);
  const verdict again = play_seed(seed);
  REQUIRE_FALSE(again.complaints.empty());
  std::printf("sim: %s fails at seed %llu: %s\n", name, static_cast<unsigned long long>(seed),
              again.complaints.front().c_str());
  CHECK(play(make_program(seed)).complaints.empty());  // and without it that seed is well
}

}  // namespace

TEST_CASE("a lost grant is found", "[sim][plants]") {
  must_be_found("lose_grant", [](std::uint64_t seed) { return play(make_program(seed), plant::lose_grant); });
}

TEST_CASE("a message of an older communicator is found", "[sim][plants]") {
  must_be_found("stale_context",
                [](std::uint64_t seed) { return play(make_program(seed), plant::stale_context); });
}

TEST_CASE("a packet that overtakes another one is found", "[sim][plants]") {
  must_be_found("reorder_one", [](std::uint64_t seed) {
    program p = make_program(seed);
    p.world.reorder_one = true;
    return play(p);
  });
}

TEST_CASE("an acknowledgement of too much is found", "[sim][plants]") {
  must_be_found("drop_ack", [](std::uint64_t seed) {
    program p = make_program(seed);
    p.world.drop_ack = true;
    return play(p);
  });
}
