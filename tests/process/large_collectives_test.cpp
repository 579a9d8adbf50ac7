// Long vectors: counts beyond 32 bits, and scratch that does not grow with the vector. The longest need
// memory and time, so they run if VERBENA_TEST_LARGE=1 says so.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

using namespace verbena::tests;

namespace {

constexpr long scratch_limit_kib = 64 << 10;

void must_be_right(const std::string& settings, int ranks, std::uint64_t bytes) {
  const std::string command =
      fmt::format("{} launcher/rdmarun -n {} tests/process/large_allreduce {}", settings, ranks, bytes);
  INFO(command);
  const finished end = run(command, std::chrono::seconds(280));
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
  int reports = 0;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line); ++reports) {
    REQUIRE(line.starts_with("grew by "));
    CHECK(std::strtol(line.c_str() + std::strlen("grew by "), nullptr, 10) < scratch_limit_kib);
  }
  CHECK(reports == ranks);
}

}  // namespace

TEST_CASE("the scratch of a long collective is bounded", "[collectives][large]") {
  for (const std::string settings :
       {"", "VERBENA_ALLREDUCE=ring VERBENA_BROADCAST=scatter_ring",
        "VERBENA_ALLREDUCE=recursive_doubling VERBENA_BROADCAST=binomial", "VERBENA_BROADCAST=node"})
    must_be_right(settings, 3, (96 << 20) + 8);
}

TEST_CASE("counts beyond 32 bits", "[collectives][large]") {
  const char* wanted = std::getenv("VERBENA_TEST_LARGE");
  if (wanted == nullptr || *wanted != '1') return;
  for (const std::uint64_t bytes : {(std::uint64_t{1} << 31) + 8, std::uint64_t{5'000'000'000}})
    for (const std::string settings : {"", "VERBENA_SINGLE_COPY=off", "VERBENA_ALLREDUCE=ring"})
      must_be_right(settings, 2, bytes);
}
