// rdmarun inside allocations of Slurm's: it takes what was given, and starts its agents by srun.
#include "slurm.hpp"

using namespace verbena::tests;
using Catch::Contains;

namespace {

const std::string place =
    "sh -c 'echo $(hostname) $VERBENA_RANK/$VERBENA_SIZE $VERBENA_LOCAL_RANK/$VERBENA_LOCAL_SIZE'";

}  // namespace

TEST_CASE("sbatch: rdmarun takes the hosts and slots of the allocation", "[slurm]") {
  const outcome end = batch("-N2 -n4", "exec $R -q " + benchmark("vb_allreduce -m 4:256k -i 2 -x 1 -c"));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("4 ranks, every byte checked") && Contains("\n262144 "));
  CHECK(end.errors.empty());
  nothing_left(5);
}

TEST_CASE("salloc: the same from a host that is none of the allocation", "[slurm]") {
  const outcome end =
      shell(on_login("salloc -Q -N2 -n4 $R -q " + benchmark("vb_allreduce -m 4:256k -i 2 -x 1 -c")), {}, 60);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("4 ranks, every byte checked") && Contains("\n262144 "));
  CHECK(end.errors.empty());
  nothing_left(5);
}

TEST_CASE("in a step of one task there are all the hosts of the job, with their processors", "[slurm]") {
  const outcome end = shell(on_login("salloc -Q -N2 -n4 srun -N1 -n1 sh -c '$R hostname; echo $SLURM_JOB_CPUS_PER_NODE'"), {}, 60);
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("h1\n") && Contains("h2\n"));
  nothing_left(5);
}

TEST_CASE("each host takes as many ranks as Slurm says, and -n may want fewer or more", "[slurm]") {
  const outcome uneven = shell(on_login("salloc -Q -N2 -n3 $R " + place));
  INFO(uneven.errors);
  CHECK(uneven.status == 0);
  CHECK(sorted_lines(uneven.output) == lines{"h1 0/3 0/2", "h1 1/3 1/2", "h2 2/3 0/1"});
  const outcome both =
      shell(on_login("salloc -Q -N2 --ntasks-per-node=2 sh -c '$R -n 1 hostname; $R -q -n 6 hostname'"));
  INFO(both.errors);
  CHECK(both.status == 0);
  CHECK(sorted_lines(both.output) == lines{"h1", "h1", "h1", "h1", "h1", "h2", "h2"});
}

TEST_CASE("-H and --hostfile choose among the hosts of the allocation", "[slurm]") {
  const outcome named = shell(on_login("salloc -Q -N2 -n4 $R -H h2:2 " + place));
  INFO(named.errors);
  CHECK(sorted_lines(named.output) == lines{"h2 0/2 0/2", "h2 1/2 1/2"});
  const outcome filed = shell("printf 'h2\\nh1\\n' >$T/hosts; " +
                              on_login("salloc -Q -N2 -n4 $R --hostfile $T/hosts --map node " + place));
  INFO(filed.errors);
  CHECK(sorted_lines(filed.output) == lines{"h1 1/2 0/1", "h2 0/2 0/1"});
}

TEST_CASE("ranks that salloc's command starts on its own host are of the allocation, too", "[slurm]") {
  // Each rank's process is beneath a slurmstepd, which limits, accounts and ends it.
  const std::string above =
      "sh -c 'p=$$; while [ $p -gt 1 ]; do read -r name </proc/$p/comm; case $name in slurmstepd*) echo "
      "$(hostname) inside;; esac; "
      "p=$(cut -d\" \" -f4 /proc/$p/stat); done'";
  const outcome end = shell("exec " + in_host() + " 1 salloc -Q -N2 -n3 $R " + above);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output) == lines{"h1 inside", "h1 inside", "h2 inside"});
}

TEST_CASE("an allocation of one host needs no agent, and rank 0 of a batch job reads its input", "[slurm]") {
  const outcome end = batch("-N1 -n2", "printf hello | $R sh -c 'echo $VERBENA_RANK/$VERBENA_SIZE $(cat)'");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output) == lines{"0/2 hello", "1/2"});
}

TEST_CASE("what a script tells its own steps does not narrow rdmarun's", "[slurm]") {
  const outcome end = batch("-N2 -n4 -c1",
                            "export SRUN_CPUS_PER_TASK=1 SLURM_EXACT=1 SLURM_NTASKS_PER_NODE=3 "
                            "SLURM_MPI_TYPE=pmix SLURM_CPU_BIND=map_cpu:0\n"
                            "exec $R sh -c 'echo $(hostname) $(nproc)'");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output).size() == 4);
}

TEST_CASE("rdmarun among several tasks of a step, or beneath a rank, stays on its host", "[slurm]") {
  const outcome tasks = shell(on_login("salloc -Q -N2 -n2 srun $R -n 2 hostname"));
  INFO(tasks.errors);
  CHECK(sorted_lines(tasks.output) == lines{"h1", "h1", "h2", "h2"});
  const outcome ranks = shell(on_login("salloc -Q -N2 -n2 $R $R -n 2 hostname"));
  INFO(ranks.errors);
  CHECK(sorted_lines(ranks.output) == lines{"h1", "h1", "h2", "h2"});
}

TEST_CASE("the job's secret is in no argument and no variable", "[slurm]") {
  // 32 bytes as 64 digits. The order's first word would betray it, too.
  shell_command job(on_login("salloc -Q -N2 -n2 $R sh -c 'echo up; sleep 4'"));
  REQUIRE(job.says("up\nup", 20));
  std::string seen;
  for (const int host : {1, 2, 3})
    seen += shell(fmt::format("{} {} sh -c 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ'", in_host(), host))
                .output;
  CHECK(job.wait(15).status == 0);
  CHECK_THAT(seen, Contains("--nodelist=h2") && Contains("--agent"));
  std::size_t digits = 0, longest = 0;
  for (const char c : seen)
    longest = std::max(longest, digits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ? digits + 1 : 0);
  CHECK(longest < 64);
}
