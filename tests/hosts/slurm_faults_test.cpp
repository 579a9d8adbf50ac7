// What goes wrong inside allocations: the status is right, in time, and nothing is left on any host or in Slurm.
#include "slurm.hpp"

using namespace verbena;
using namespace verbena::tests;
using Catch::Contains;

TEST_CASE("a rank that fails inside an allocation ends the job, is named, and gives the status",
          "[slurm][faults]") {
  const outcome login =
      shell(on_login("salloc -Q -N2 -n4 $R sh -c '[ $VERBENA_RANK = 3 ] && exit 7; exec sleep 60'"));
  CHECK(login.status == 7);
  CHECK_THAT(login.errors, Contains("rank 3 on h2: exited with status 7"));
  nothing_left(5);
  const outcome inside =
      batch("-N2 -n4", "exec $R sh -c '[ $VERBENA_RANK = 1 ] && kill -9 $$; exec sleep 60'");
  CHECK(inside.status == 137);
  CHECK_THAT(inside.errors, Contains("rank 1 on h1: killed by signal 9"));
  nothing_left(5);
}

TEST_CASE("scancel ends a batch job's ranks on all hosts", "[slurm][faults]") {
  shell_command job(
      "printf '#!/bin/sh\\nexec $R sh -c \"(setsid sleep 61 &); echo up; sleep 60\"\\n' >$T/script; : "
      ">$T/out; " +
      in_host() +
      " 3 sbatch -Q --parsable -N2 -n4 -o $T/out -e $T/err $T/script >$T/id; tail -f $T/out & watch=$!; "
      "while " +
      in_host() + " 3 squeue -h | grep -q .; do sleep 0.2; done; kill $watch; cat $T/err >&2");
  REQUIRE(job.says("up\nup\nup\nup", 20));
  const base::nanoseconds begin = base::steady_now();
  shell(on_login("scancel -u root"));
  const outcome end = job.wait(60);
  INFO(end.errors);
  CHECK(base::steady_now() - begin < 15 * base::second);
  CHECK_THAT(end.errors, Contains("CANCELLED"));
  nothing_left(2);
}

TEST_CASE("scancel below salloc ends the ranks and rdmarun", "[slurm][faults]") {
  shell_command job(on_login("salloc -Q -N2 -n4 $R sh -c '(setsid sleep 61 &); echo up; sleep 60'"));
  REQUIRE(job.says("up\nup\nup\nup", 20));
  const base::nanoseconds begin = base::steady_now();
  shell(on_login("scancel -u root"));
  const outcome end = job.wait(60);
  INFO(end.errors);
  CHECK(end.status > 0);
  CHECK(base::steady_now() - begin < 15 * base::second);
  nothing_left(2);
}

TEST_CASE("ranks and rdmarun that are killed leave nothing in an allocation", "[slurm][faults]") {
  shell_command job(on_login("salloc -Q -N2 -n4 $R sh -c '(setsid sleep 61 &); echo up; sleep 60'"));
  REQUIRE(job.says("up\nup\nup\nup", 20));
  REQUIRE(shell(in_host() + " 3 pkill -KILL -o -x rdmarun").status == 0);
  const base::nanoseconds begin = base::steady_now();
  job.wait(60);
  CHECK(base::steady_now() - begin < 10 * base::second);  // salloc gives no status that tells of a KILL
  nothing_left(3);
}

TEST_CASE("an agent that is killed inside an allocation ends the job with its host named",
          "[slurm][faults]") {
  shell_command job(on_login("salloc -Q -N2 -n2 $R sh -c 'echo up; sleep 60'"));
  REQUIRE(job.says("up\nup", 20));
  REQUIRE(shell(in_host() + " 2 pkill -KILL -o -x rdmarun").status == 0);
  const outcome end = job.wait(60);
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: the connection to rdmarun's agent there is gone"));
  nothing_left(5);
}

TEST_CASE("srun that is not there, or refuses, is told with its words", "[slurm][faults]") {
  const outcome missing =
      shell(on_login("salloc -Q -N2 -n2 env PATH=/usr/lib:$T /bin/sh -c '/bin/ln -s /usr/bin/env $T/env; "
                     "exec $R hostname'"));
  CHECK(missing.status == 125);
  CHECK_THAT(missing.errors, Contains("cannot start rdmarun's agent there: ") && Contains("srun") &&
                                 Contains("No such file"));
  // The allocation is over.
  const outcome over =
      shell(on_login("sh -c 'export SLURM_JOB_ID=999999 SLURM_JOB_NODELIST=h[1-2] "
                     "SLURM_TASKS_PER_NODE=1\\(x2\\); exec $R hostname'"));
  CHECK(over.status == 125);
  CHECK_THAT(over.errors,
             Contains("cannot start rdmarun's agent there: srun: ") && Contains("nvalid job id"));
  nothing_left(3);
}
