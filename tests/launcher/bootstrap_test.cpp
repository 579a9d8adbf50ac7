// The PMIx server and the library's bootstrap, one against the other, in real ranks.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace verbena::tests;

namespace {

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("every rank knows its place and its neighbours") {
  const outcome got = shell("$R -q -n 3 $C info | sort");
  CHECK(got.output ==
        "rank 0 of 3 local 0 1 2 by rdmarun\nrank 1 of 3 local 0 1 2 by rdmarun\nrank 2 of 3 local 0 1 2 by "
        "rdmarun\n");
  CHECK(got.errors.empty());
}

TEST_CASE("values of all sizes reach all ranks over several fences") {
  for (const char* count : {"1", "2", "5", "16"}) {
    INFO(count);
    const outcome got = shell(std::string{"$R -q -n "} + count + " $C exchange");
    CHECK(got.status == 0);
    CHECK(lines(got.output) == static_cast<std::size_t>(std::atoi(count)));
    CHECK(got.errors.empty());
  }
}

TEST_CASE("the segment is one memory for all ranks, and its page tells who has joined") {
  const outcome got = shell("$R -q -n 4 $C segment | sort");
  CHECK(got.output == "rank 0 counts 4\nrank 1 counts 4\nrank 2 counts 4\nrank 3 counts 4\n");
}

TEST_CASE("a wrapper that closes or reuses descriptors does not lose the segment") {
  const outcome closed = shell(
      "$R -q -n 2 sh -c 'for f in 3 4 5 6 7 8 9; do eval \"exec $f<&-\"; done; exec $C segment' | sort");
  CHECK(closed.output == "rank 0 counts 2\nrank 1 counts 2\n");
  const outcome reused = shell(
      "$R -q -n 2 sh -c 'for f in 3 4 5 6 7 8 9; do eval \"exec $f</dev/null\"; done; exec $C segment' | "
      "sort");
  CHECK(reused.output == "rank 0 counts 2\nrank 1 counts 2\n");
}

TEST_CASE("a program started by hand is a job of one") {
  const outcome got = shell("$C info");
  CHECK(got.output == "rank 0 of 1 local 0 by nothing (job of one)\n");
  CHECK(shell("$C exchange").status == 0);
  CHECK(shell("SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_JOB_ID=3 $C info").status == 0);
}

TEST_CASE("a task of another launcher's step without PMIx refuses, unless told otherwise") {
  const outcome refused = shell("SLURM_NTASKS=4 SLURM_PROCID=2 $C info");
  CHECK(refused.status == 3);
  CHECK(refused.errors.find("srun --mpi=pmix") != std::string::npos);
  CHECK(shell("VERBENA_SINGLETON=1 SLURM_NTASKS=4 SLURM_PROCID=2 $C info").status == 0);
}

TEST_CASE("a server that is gone gives one sentence with both versions and none of libpmix's words") {
  const outcome got = shell(
      "PMIX_NAMESPACE=x PMIX_RANK=0 PMIX_VERSION=9.9 PMIX_SERVER_URI41='a;tcp4://127.0.0.1:1' "
      "PMIX_SERVER_URI4='a;tcp4://127.0.0.1:1' $C info");
  CHECK(got.status == 3);
  CHECK(got.errors.find("cannot join the job: PMIx_Init") != std::string::npos);
  CHECK(got.errors.find("9.9") != std::string::npos);
  CHECK(lines(got.errors) == 1);
}

TEST_CASE("libpmix's own words do not reach the user when its server cannot start") {
  const outcome got = shell("PMIX_MCA_ptl_base_if_include=nosuch $R -n 1 true");
  CHECK(got.status == 125);
  CHECK(lines(got.errors) == 1);
  CHECK(got.errors.find("rdmarun: cannot start the PMIx server: PMIx_server_init") == 0);
  CHECK(shell("PMIX_MCA_ptl_base_if_include=nosuch $R -v -n 1 true").errors.find("listener") !=
        std::string::npos);
}

TEST_CASE("a loopback interface that is down is named as the cause") {
  if (shell("unshare -rn true").status != 0) {
    WARN("skipped: network namespaces are not to be had here");
    return;
  }
  const outcome down = shell("unshare -rn $R -n 2 $C exchange");
  CHECK(down.status == 125);
  CHECK(down.errors.find("the loopback interface is down (ip link set lo up)") != std::string::npos);
  CHECK(shell("unshare -rn sh -c 'ip link set lo up; $R -n 2 $C exchange'").status == 0);
}

TEST_CASE("a fence that not everybody reaches ends with a sentence, in time") {
  const outcome got =
      shell("$R -q -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then sleep 4; else exec $C late; fi'");
  CHECK(got.output.find("rank 1 on ") == 0);
  CHECK(got.output.find("waited 1 s for all 2 ranks of the job to meet") != std::string::npos);
}

TEST_CASE("a rank in a user namespace of its own joins") {
  if (shell("unshare -Ur true").status != 0) {
    WARN("skipped: user namespaces are not to be had here");
    return;
  }
  CHECK(shell("$R -q -n 2 unshare -Ur $C exchange").status == 0);
}

TEST_CASE("a rank that has left and exits at once counts as left, however late rdmarun looks") {
  // Opening the next rank's output, a pipe that nobody reads yet, holds rdmarun up while rank 0 comes and
  // goes.
  const outcome got = shell(
      "mkdir $T/o; mkfifo $T/o/rank.1.out; $R -n 2 --output $T/o $C info & until grep -q 'rank 0' "
      "$T/o/rank.0.out "
      "2>/dev/null; do sleep 0.01; done; sleep 0.5; cat $T/o/rank.1.out; wait $!; echo $?");
  CHECK(got.output == "rank 1 of 2 local 0 1 by rdmarun\n0\n");
  CHECK(got.errors.empty());
}

TEST_CASE("rdmarun works inside a rank of rdmarun") {
  const outcome got = shell("$R -q -n 2 sh -c '$R -q -n 2 $C info' | sort | uniq -c | tr -s ' '");
  CHECK(got.output == " 2 rank 0 of 2 local 0 1 by rdmarun\n 2 rank 1 of 2 local 0 1 by rdmarun\n");
}
