// Programs that Open MPI's mpirun starts: its daemons are the PMIx host, over ssh, and no rdmarun is there.
#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

using namespace verbena::tests;
using Catch::Contains;

namespace {

outcome mpirun(const std::string& words) {
  return shell(
      on_h1("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe " + words),
      {}, 60);
}

bool is_there() {
  if (shell("mpirun --version").output.find("Open MPI") != std::string::npos) return true;
  WARN("skipped: Open MPI's mpirun (openmpi-bin) is not here");
  return false;
}

}  // namespace

TEST_CASE("a checked all-reduce runs under Open MPI's mpirun, on one host and over two", "[hosts][mpirun]") {
  if (!is_there()) return;
  for (const char* hosts : {"h1:4", "h1:2,h2:2"}) {
    const outcome end = mpirun(fmt::format(
        "-x VERBENA_EXPLAIN=1 -H {} -n 4 {}/vb_allreduce -m 4:64k -i 2 -x 1 -c", hosts, BENCHMARKS_PATH));
    INFO(hosts << end.errors);
    CHECK(end.status == 0);
    CHECK_THAT(end.output, Contains("4 ranks, every byte checked") && Contains("\n65536 "));
    CHECK_THAT(end.errors, Contains("-> shm:"));
    CHECK((end.errors.find("-> tcp: it is on another host") != std::string::npos) == (hosts[3] == '2'));
  }
}

TEST_CASE("traffic of all kinds, and values through PMIx, are right under mpirun", "[hosts][mpirun]") {
  if (!is_there()) return;
  const outcome traffic = mpirun("-H h1:1,h2:2 -n 3 " SOAK_PATH " 2 11");
  INFO(traffic.output << traffic.errors);
  CHECK(traffic.status == 0);
  const outcome values = mpirun("-H h1:2,h2:1 -n 3 $C exchange");
  INFO(values.errors);
  CHECK(values.status == 0);
  CHECK(sorted_lines(values.output) == lines{"rank 0 exchanged", "rank 1 exchanged", "rank 2 exchanged"});
}

TEST_CASE("a rank that dies under mpirun ends the job on both hosts", "[hosts][mpirun][faults]") {
  if (!is_there()) return;
  const outcome end = mpirun(
      fmt::format("-H h1:2,h2:2 -n 4 sh -c 'if [ $PMIX_RANK = 3 ]; then (sleep 1; kill -9 $$) & fi; exec "
                  "{}/vb_allreduce -m 64k:64k -i 100000000'",
                  BENCHMARKS_PATH));
  INFO(end.errors);
  CHECK(end.status == 137);
  CHECK(end.seconds < 10);
  for (const int host : {1, 2}) CHECK(left_on(host, 5) == "");
}
