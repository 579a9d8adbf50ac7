// Programs that Slurm starts itself: srun --mpi=pmix is the PMIx host, and no rdmarun is there.
#include "slurm.hpp"

using namespace verbena::tests;
using Catch::Contains;

TEST_CASE("a checked all-reduce runs under srun --mpi=pmix over two hosts", "[slurm]") {
  const outcome end =
      shell(on_login("srun -N2 -n4 --mpi=pmix " + benchmark("vb_allreduce -m 4:256k -i 2 -x 1 -c")), {}, 60);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("4 ranks, every byte checked") && Contains("\n262144 "));
}

TEST_CASE("ranks of one host use shared memory under srun, also beside a host with a single rank",
          "[slurm]") {
  const outcome end = shell(on_login("env VERBENA_EXPLAIN=1 srun -N2 -n3 --mpi=pmix " +
                                     benchmark("vb_allreduce -m 8:64k -i 2 -x 1 -c")),
                            {}, 60);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("3 ranks, every byte checked"));
  CHECK_THAT(end.errors, Contains("-> tcp: it is on another host; 10.78.91.") && Contains("-> shm:"));
}

TEST_CASE("traffic of all kinds, and values through PMIx, are right under srun", "[slurm]") {
  const outcome traffic = shell(on_login("srun -N2 -n4 --mpi=pmix " SOAK_PATH " 3 11"), {}, 60);
  INFO(traffic.output << traffic.errors);
  CHECK(traffic.status == 0);
  const outcome values = shell(on_login("srun -N2 -n3 --mpi=pmix $C exchange"), {}, 60);
  INFO(values.errors);
  CHECK(values.status == 0);
  CHECK(sorted_lines(values.output) == lines{"rank 0 exchanged", "rank 1 exchanged", "rank 2 exchanged"});
}

TEST_CASE("tasks of an srun without PMIx server say so in a sentence, and one task is a job of one",
          "[slurm]") {
  const outcome several = shell(on_login("srun -N2 -n2 " + benchmark("vb_barrier -i 1")));
  CHECK(several.status != 0);
  CHECK_THAT(several.errors,
             Contains("Slurm started 2 tasks but offers no PMIx server") && Contains("srun --mpi=pmix"));
  const outcome one = shell(on_login("srun -n1 $C exchange"));
  INFO(one.errors);
  CHECK(one.status == 0);
  CHECK(one.output == "rank 0 exchanged\n");
  nothing_left(5);
}

namespace {

/// An all-reduce without end, of which a rank is killed after a second: rank 3 is alone on the second host.
outcome die_in_allreduce(int victim, const std::string& options) {
  return shell(on_login("srun " + options + " -N2 -n4 --mpi=pmix sh -c 'if [ $SLURM_PROCID = " +
                        std::to_string(victim) + " ]; then (sleep 1; kill -9 $$) & fi; exec " +
                        benchmark("vb_allreduce -m 64k:64k -i 100000000'")),
               {}, 60);
}

}  // namespace

TEST_CASE("a rank that dies under srun ends the step at once if srun is told so", "[slurm][faults]") {
  const outcome end = die_in_allreduce(3, "--kill-on-bad-exit");
  INFO(end.errors);
  CHECK(end.status > 128);  // of a KILL, or of the TERM that the others got
  CHECK(end.seconds < 10);
  nothing_left(5);
}

TEST_CASE("a rank that dies beside others ends the step, by Slurm's PMIx server", "[slurm][faults]") {
  const outcome end = die_in_allreduce(1, "");
  INFO(end.errors);
  CHECK(end.status > 128);
  CHECK(end.seconds < 10);
  nothing_left(5);
}

TEST_CASE("otherwise the ranks of other hosts give up when the link has been dead for its time, and name it",
          "[slurm][faults]") {
  const outcome end = die_in_allreduce(3, "--export=ALL,VERBENA_LINK_TIMEOUT_S=3");
  INFO(end.errors);
  CHECK(end.status > 0);
  CHECK_THAT(end.errors, Contains("rank 3 of this communicator of 4 is gone"));
  CHECK(end.seconds < 30);
  nothing_left(5);
}
