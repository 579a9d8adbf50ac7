// What can be asked of rdmarun beside the number of ranks.
#include "shell.hpp"

#include <catch2/catch.hpp>

using namespace verbena::tests;

TEST_CASE("several programs are one job") {
  const outcome got = shell("$R -q -n 1 $C info : -n 2 sh -c 'exec $C info' | sort");
  CHECK(got.output ==
        "rank 0 of 3 local 0 1 2 by rdmarun\nrank 1 of 3 local 0 1 2 by rdmarun\nrank 2 of 3 local 0 1 2 by "
        "rdmarun\n");
  const outcome failed = shell("$R -q -n 2 sleep 20 : sh -c 'exit 8'");
  CHECK(failed.status == 8);
  const outcome missing = shell("$R -n 1 sleep 20 : no-such-program");
  CHECK(missing.status == 127);
  CHECK(missing.errors.find("rank 1 on ") != std::string::npos);
  CHECK(missing.errors.find("cannot run 'no-such-program'") != std::string::npos);
}

TEST_CASE("this host's names are accepted; where another is not reached, nothing is started") {
  CHECK(shell("$R -q -H localhost:3 echo x").output == "x\nx\nx\n");
  CHECK(shell("$R -q -n 1 --host $(hostname) echo x").output == "x\n");
  const outcome other = shell("$R --ssh 'echo no way there >&2; false' -H localhost,far-away:2 echo x");
  CHECK(other.status == 125);
  CHECK(other.errors == "rdmarun: host far-away: cannot start rdmarun's agent there: no way there\n");
  CHECK(other.output.empty());
}

TEST_CASE("more ranks than cores are refused on request only") {
  const outcome got = shell("taskset -c 0 $R --no-oversubscribe -n 2 echo x");
  CHECK(got.status == 2);
  CHECK(got.output.empty());
  CHECK(got.errors.find("2 ranks on 1 core: refused") != std::string::npos);
  CHECK(shell("taskset -c 0 $R --no-oversubscribe -n 1 echo x").output == "x\n");
}

TEST_CASE("the standard input goes to the rank asked for, or to none") {
  CHECK(shell("echo hello | $R -q --stdin 2 -n 3 sh -c '[ $VERBENA_RANK = 2 ] && sleep 0.3; echo "
              "$VERBENA_RANK:$(cat)' | sort")
            .output == "0:\n1:\n2:hello\n");
  CHECK(shell("echo hello | ($R -q --stdin none -n 2 sh -c 'echo :$(cat)'; cat)").output == ":\n:\nhello\n");
  CHECK(shell("$R --stdin 2 -n 2 true").status == 2);
}

TEST_CASE("each rank's output goes to files on request") {
  const outcome got = shell(
      "$R -n 2 --output $T/deep/folder sh -c 'echo out $VERBENA_RANK; echo err $VERBENA_RANK >&2'; cd "
      "$T/deep/folder; head -v *");
  CHECK(got.output ==
        "==> rank.0.err <==\nerr 0\n\n==> rank.0.out <==\nout 0\n\n==> rank.1.err <==\nerr 1\n\n==> "
        "rank.1.out <==\nout 1\n");
  const outcome refused = shell("$R -n 2 --output /proc/no/such true");
  CHECK(refused.status == 2);
  CHECK(refused.errors.find("cannot make the directory '/proc/no/such'") != std::string::npos);
}

TEST_CASE("the shell completes options, fabrics and policies") {
  const std::string complete = "PATH=$(dirname $R):$PATH bash -c '. " VERBENA_SOURCE_ROOT
                               "/launcher/rdmarun.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _rdmarun; "
                               "echo ${COMPREPLY[@]}' bash rdmarun ";
  CHECK(shell(complete + "--tim").output == "--timeout\n");
  CHECK(shell(complete + "-n 2 --fabric s").output == "self shm\n");
  CHECK(shell(complete + "--bind-to s").output == "socket\n");
  CHECK(shell(complete + "--report").output == "--report-bindings\n");
}

TEST_CASE("hosts of a Slurm job that is over are refused with the variable that named them") {
  const outcome got = shell(
      "mkdir $T/b; printf '#!/bin/sh\\necho srun: error: Invalid job id specified >&2; exit 1\\n' > "
      "$T/b/srun; chmod +x $T/b/srun; "
      "PATH=$T/b:$PATH SLURM_JOB_ID=77 SLURM_JOB_NODELIST='gone[1-2]' SLURM_TASKS_PER_NODE='1(x2)' $R true");
  CHECK(got.status == 125);
  CHECK(got.errors.find("cannot start rdmarun's agent there: srun: error: Invalid job id specified\n") !=
        std::string::npos);
  CHECK(got.errors.find("rdmarun: it was asked of Slurm because SLURM_JOB_ID is 77: if that job is over, "
                        "unset it, or start agents by ssh (--ssh ssh)\n") != std::string::npos);
}
