// Programs of others, which are PMIx clients and know nothing of the library: what rdmarun's server gives them on one host.
// Over several: tests/hosts/hosts_pmix_test.cpp.
#include "shell.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

using namespace verbena::tests;
using Catch::Contains;

TEST_CASE("a PMIx client of others puts, meets, in whole or in part, and gets") {
  const outcome end = shell("$R -q -n 4 $PEERS values | sort");
  CHECK(end.output == "rank 0 has read all\nrank 1 has read all\nrank 2 has read all\nrank 3 has read all\n");
  CHECK(end.errors == "");
}

TEST_CASE(
    "a PMIx client that asks for events is told of the rank whose failure ends the job, and how it failed") {
  struct row {
    const char* how;
    int status;
    const char* told;
  };
  for (const row& each : {row{"status", 7, "PROC-EXIT-NONZERO-TERM of rank 2, 7"},
                          row{"abort", 9, "PROC-ABORT-REQUESTED of rank 2, 9"}}) {
    INFO(each.how);
    const outcome end = shell(fmt::format("$R -q -n 3 $PEERS watch {}", each.how));
    CHECK(end.status == each.status);
    CHECK_THAT(end.output, Contains(fmt::format("rank 0: {}\n", each.told)) &&
                               Contains(fmt::format("rank 1: {}\n", each.told)));
    CHECK_THAT(end.output, !Contains("no event"));
  }
}
