// Random traffic of all kinds between four ranks on however few cores, every byte checked (tests/soak).
#include "command.hpp"

#include <catch2/catch.hpp>

using Catch::Contains;
using namespace verbena::tests;

TEST_CASE("random traffic is right to the byte, whatever moves it", "[soak]") {
  for (const char* surroundings :
       {"", "VERBENA_SINGLE_COPY=off VERBENA_UNEXPECTED_BUDGET=16k", "VERBENA_EAGER_LIMIT=64 VERBENA_ALLREDUCE=ring"}) {
    const finished end = run(std::string(surroundings) + " launcher/rdmarun -q -n 4 tests/soak/random_traffic 10",
                             std::chrono::seconds(80));
    INFO(surroundings << "\n" << end.output << end.errors);
    CHECK(end.status == 0);
    CHECK_THAT(end.output, Contains("soak: 1"));
  }
}

TEST_CASE("random traffic plays again what its seed and round say", "[soak]") {
  for (const char* round : {"3", "7", "20"}) {
    const finished end = run(std::string("launcher/rdmarun -q -n 4 tests/soak/random_traffic 1 5 ") + round);
    INFO(end.output << end.errors);
    CHECK(end.status == 0);
  }
}
