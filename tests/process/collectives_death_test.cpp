// A rank dies in the middle of a collective: every other one leaves it within a second, with an error that
// names a rank that is gone.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

using namespace verbena::tests;

namespace {

int occurrences(const std::string& text, const std::string& of) {
  int count = 0;
  for (std::size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("survivors of a collective are told who is gone", "[collectives][faults]") {
  const std::string algorithm = GENERATE("auto", "ring", "recursive_doubling");
  const int count = GENERATE(0, 1, 1000, 60000);
  const int ranks = GENERATE(2, 4);
  // The barrier has algorithms of its own; the ring stands for messages.
  const std::string barrier = algorithm == "ring" ? "dissemination" : "auto";
  const std::string command = fmt::format(
      "VERBENA_ALLREDUCE={} VERBENA_BARRIER={} launcher/rdmarun -q --abort-grace 10 -n {} "
      "tests/process/die_in_collective {}",
      algorithm, barrier, ranks, count);
  INFO(command);
  const finished end = run(command, std::chrono::seconds(30));
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 137);
  const std::string call = count == 0 ? "barrier" : "allreduce";
  CHECK(occurrences(end.output, "told within a second: " + call + ": rank ") == ranks - 1);
  CHECK(occurrences(end.output, fmt::format("of this communicator of {} is gone", ranks)) == ranks - 1);
  CHECK(occurrences(end.output, "NOT") == 0);
  CHECK(occurrences(end.output, "rank 1 of this") >= 1);
}

TEST_CASE("a rank that leaves early is named by those that still need it", "[collectives][faults]") {
  const std::string algorithm = GENERATE("auto", "ring");
  const int count = GENERATE(0, 1, 60000);
  const int ranks = GENERATE(2, 4);
  const std::string barrier = algorithm == "ring" ? "dissemination" : "auto";
  const std::string command = fmt::format(
      "VERBENA_ALLREDUCE={} VERBENA_BARRIER={} launcher/rdmarun -q -n {} tests/process/die_in_collective {} "
      "leave",
      algorithm, barrier, ranks, count);
  INFO(command);
  const finished end = run(command, std::chrono::seconds(30));
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
  CHECK(occurrences(end.output, "told within a second: ") == ranks - 1);
  CHECK(occurrences(end.output, "NOT") == 0);
}
