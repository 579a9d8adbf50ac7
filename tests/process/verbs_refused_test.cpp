// Asked for a device that is not there, on a machine with or without RDMA, in a build with or without verbs: a sentence, soon.
#include "command.hpp"

#include <catch2/catch.hpp>

using Catch::Contains;
using namespace verbena::tests;

TEST_CASE("verbs without a device are refused with a sentence", "[verbs]") {
  const finished end =
      run("launcher/rdmarun --fabric verbs --device nosuch0 -n 3 benchmarks/vb_latency -m 8:8",
          std::chrono::seconds(20));
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status != 0);
  CHECK(end.output.empty());
  CHECK_THAT(end.errors, Contains("has no way to rank") && Contains("not allowed by VERBENA_FABRIC=verbs"));
  CHECK_THAT(end.errors, Contains("this machine has no RDMA device") ||
                             Contains("there is no device or port 'nosuch0'") ||
                             Contains("this build has no verbs"));
}

TEST_CASE("a job of one needs no device", "[verbs]") {
  CHECK(run("launcher/rdmarun --fabric verbs -n 1 benchmarks/vb_barrier -i 1").status == 0);
}
