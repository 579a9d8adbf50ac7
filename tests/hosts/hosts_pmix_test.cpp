// Programs of others, which are PMIx clients and know nothing of the library: what the servers of a job's hosts give them together.
#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

using namespace verbena::tests;
using Catch::Contains;

TEST_CASE("a PMIx client of others finds its place among the hosts in the keys of the job", "[hosts][pmix]") {
  const outcome end = shell(on_h1("$R -H h1:2,h2:1 -n 2 $PEERS keys : -n 1 $PEERS keys"));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output) == lines{"rank 0 of 3, program 0, local 0 of 2 (0,1, led by 0), host h1, "
                                          "number 0 of 2; the last one is on h2",
                                          "rank 1 of 3, program 0, local 1 of 2 (0,1, led by 0), host h1, "
                                          "number 0 of 2; the last one is on h2",
                                          "rank 2 of 3, program 1, local 0 of 1 (2, led by 2), host h2, "
                                          "number 1 of 2; the last one is on h2"});
}

TEST_CASE(
    "PMIx fences with and without collection, of all ranks and of some, and direct modex work across hosts",
    "[hosts][pmix]") {
  const outcome end = shell(on_h1("$R -H h1:2,h2:2,h3:1 $PEERS values"));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output) == lines{"rank 0 has read all", "rank 1 has read all", "rank 2 has read all",
                                          "rank 3 has read all", "rank 4 has read all"});
}

TEST_CASE("PMIx_Abort on another host ends the job with its status, its words and its host",
          "[hosts][pmix][faults]") {
  const outcome end = shell(on_h1("$R -H h1,h2,h3 $PEERS abort"));
  CHECK(end.status == 9);
  CHECK_THAT(end.errors,
             Contains("rank 2 on h3: aborted the job with status 9") && Contains(": nothing to do\n"));
  CHECK(end.seconds < 5);
}

TEST_CASE("PMIx clients on all hosts are told of a rank of another host that has failed, and how",
          "[hosts][pmix][faults]") {
  const auto watch = [](const std::string& how, const std::string& told) {
    const outcome end = shell(on_h1("$R -H h1,h2,h3 $PEERS watch " + how));
    INFO(end.errors);
    CHECK(sorted_lines(end.output) == lines{"rank 0: " + told, "rank 1: " + told});
  };
  watch("signal", "PROC-ABORTED-BY-SIG of rank 2, 137");
  watch("silence", "PROC TERMINATED WITHOUT SYNC of rank 2, 0");
  // The same with its whole host: the agent there is killed, and takes the rank with it.
  const outcome end =
      shell(on_h1("$R -H h1,h2,h3 sh -c '[ $VERBENA_RANK = 2 ] && (sleep 1; pkill -KILL -o -x rdmarun) & "
                  "exec $PEERS watch host'"));
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h3: "));
  CHECK(sorted_lines(end.output) ==
        lines{"rank 0: PROC-ABORTED-BY-SIG of rank 2, 137", "rank 1: PROC-ABORTED-BY-SIG of rank 2, 137"});
}
