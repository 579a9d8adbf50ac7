// Communicators and one-sided access between real processes: with cross-memory attach and without, and with a
// death.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

using namespace verbena::tests;

TEST_CASE("processes share memory in communicators of all kinds", "[one_sided][communicators]") {
  const std::string single_copy = GENERATE("auto", "off");
  const int ranks = GENERATE(1, 2, 5);
  const finished end = run(fmt::format(
      "VERBENA_SINGLE_COPY={} launcher/rdmarun -q -n {} tests/process/share_and_split", single_copy, ranks));
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
  CHECK(end.output == "right\n");
}

TEST_CASE("processes make and free communicators", "[communicators]") {
  const int count = on_several_hosts() ? 2000 : 20000;
  const finished end = run(fmt::format("launcher/rdmarun -q -n 3 tests/process/share_and_split {}", count));
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK(end.output.find(fmt::format("{} communicators in ", count)) == 0);
}

TEST_CASE("who accesses the memory of a rank that dies is told so", "[one_sided][faults]") {
  const std::string single_copy = GENERATE("auto", "off");
  const finished end = run(fmt::format(
      "VERBENA_SINGLE_COPY={} launcher/rdmarun -q --abort-grace 10 -n 3 tests/process/share_and_split die",
      single_copy));
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 137);
  std::size_t told = 0;
  for (std::size_t at = end.output.find("told: rank "); at != std::string::npos;
       at = end.output.find("told: rank ", at + 1))
    ++told;
  CHECK(told == 2);
  CHECK(end.output.find("of rank 1: rank 1 was killed by signal 9") != std::string::npos);
}
