// The messages that each all-reduce sends are those of its formula: a schedule that sends more would still be
// right.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <map>

using namespace verbena::tests;

namespace {

std::string messages(const std::string& algorithm, int ranks) {
  const finished end = run(fmt::format(
      "VERBENA_ALLREDUCE={} launcher/rdmarun -n {} tests/process/count_messages", algorithm, ranks));
  INFO(end.errors);
  CHECK(end.status == 0);
  return end.output;
}

}  // namespace

TEST_CASE("recursive doubling sends 2^k k + 2 (n - 2^k) messages", "[allreduce]") {
  const std::map<int, int> formula{{1, 0}, {2, 2}, {3, 2 + 2}, {4, 8}, {7, 8 + 6}};
  for (const auto& [ranks, count] : formula) {
    CAPTURE(ranks);
    CHECK(messages("recursive_doubling", ranks) == fmt::format("{}\n", 10 * count));
  }
}

TEST_CASE("the ring sends 2 n (n - 1) messages", "[allreduce]") {
  for (int ranks : {1, 2, 3, 7}) {
    CAPTURE(ranks);
    CHECK(messages("ring", ranks) == fmt::format("{}\n", 10 * 2 * ranks * (ranks - 1)));
  }
}

TEST_CASE("the all-reduce of a node sends no message", "[allreduce][node]") {
  for (int ranks : {1, 2, 3, 7}) {
    CAPTURE(ranks);
    CHECK(messages("node", ranks) == "0\n");
  }
}
