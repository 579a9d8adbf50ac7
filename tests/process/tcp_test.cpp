// Whole programs over TCP, between the ranks of one machine because they are told so.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

using namespace verbena::tests;
using Catch::Contains;

namespace {

finished over_tcp(int ranks, const std::string& words, const std::string& more = {}) {
  return run(fmt::format("{} launcher/rdmarun --fabric tcp -n {} benchmarks/{}", more, ranks, words),
             std::chrono::seconds(100));
}

void must_validate(int ranks, const std::string& words, const std::string& largest,
                   const std::string& more = {}) {
  const finished end = over_tcp(ranks, words, more);
  INFO(words << "\n" << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte checked") && Contains("\n" + largest + " "));
}

}  // namespace

TEST_CASE("latency and bandwidth validate over TCP", "[tcp]") {
  must_validate(2, "vb_latency -m 0:4m -i 20 -x 2 -c", "4194304");
  must_validate(2, "vb_bw -m 1:1m -i 3 -x 1 -W 16 -c", "1048576");
  must_validate(2, "vb_bibw -m 1:1m -i 3 -x 1 -W 16 -c", "1048576");
  must_validate(4, "vb_mbw_mr -m 1:64k -i 2 -x 1 -W 8 -c", "65536");
}

TEST_CASE("puts, gets and collectives validate over TCP", "[tcp]") {
  must_validate(2, "vb_put_bw -m 1:256k -i 2 -x 1 -W 8 -c", "262144");
  must_validate(2, "vb_get_latency -m 1:256k -i 3 -x 1 -c", "262144");
  for (const int ranks : {2, 5}) must_validate(ranks, "vb_allreduce -m 4:1m -i 3 -x 1 -c", "1048576");
  must_validate(3, "vb_alltoall -m 1:64k -i 3 -x 1 -c", "65536");
  must_validate(3, "vb_allreduce -m 4:256k -i 3 -x 1 -c", "262144", "VERBENA_SPIN_US=0");
}

TEST_CASE("--explain says that it is TCP, between which addresses, and why", "[tcp]") {
  const finished end = over_tcp(2, "vb_barrier -i 1", "VERBENA_EXPLAIN=1");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(
      end.errors,
      Catch::Matches(R"([\s\S]*  -> tcp: it is on this host; 127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+[\s\S]*)"));
  CHECK_THAT(end.errors, Contains("shm: not allowed by VERBENA_FABRIC=tcp"));
}

TEST_CASE("TCP is not taken between ranks that share memory, unless it is asked for", "[tcp]") {
  const finished end = run("launcher/rdmarun --explain -n 2 benchmarks/vb_barrier -i 1");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.errors, Contains("-> shm:") && Contains("tcp: not looked for: all ranks are on this node") &&
                             !Contains("-> tcp"));
}

TEST_CASE("a rank killed over TCP ends the job soon, named", "[tcp][faults]") {
  const finished end =
      run("launcher/rdmarun --fabric tcp -n 3 sh -c 'if [ $PMIX_RANK = 1 ]; then (sleep 1; kill -9 $$) & fi; "
          "exec "
          "benchmarks/vb_allreduce -m 64k:64k -i 100000000'",
          std::chrono::seconds(20));
  INFO(end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 137);
  CHECK_THAT(end.errors, Contains("rank 1"));
}
