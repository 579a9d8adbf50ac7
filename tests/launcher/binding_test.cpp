// Where ranks run. Each test has a /dev/null of its own, so that other jobs of this machine do not matter.
#include "base/cores.hpp"
#include "shell.hpp"

#include <unistd.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <vector>

using namespace verbena::tests;

namespace {

// One write a line: two jobs share an output here, and what waits for its newline is passed on after 100 ms.
const std::string look = "sed -n s/^Cpus_allowed_list:.//p /proc/self/status";

/// The two processors the tests are about, "0" and "1" on most machines; fewer: skip.
std::vector<std::string> two_cores() {
  const auto mask = verbena::base::mask_cpus();
  if (mask.size() < 2 || ::geteuid() != 0) {
    WARN("skipped: needs two processors, and root for a /dev/null of its own");
    return {};
  }
  return {std::to_string(mask[0]), std::to_string(mask[1])};
}

const std::string alone =
    "exec unshare -m sh -c 'mkdir $T/d && mount -t tmpfs t $T/d && mknod -m 666 $T/d/null c 1 3 && mount "
    "--bind "
    "$T/d/null /dev/null && eval \"$JOB\"'";

/// Runs a job where nobody else holds cores, on two processors with an invented wiring.
outcome on_two(const std::vector<std::string>& cores, const std::string& job,
               shell_command::variables extra = {}) {
  extra["JOB"] = job;
  extra["LOOK"] = look;
  extra["P"] = cores[0];
  extra["Q"] = cores[1];
  return shell("exec taskset -c $P,$Q sh -c '" + std::string{"eval \"$GO\""} + "'", [&] {
    extra["GO"] = alone;
    return extra;
  }());
}

std::string sorted_lines(std::string a, std::string b) {
  if (b < a) std::swap(a, b);
  return a + "\n" + b + "\n";
}

}  // namespace

TEST_CASE("as many ranks as cores are bound, one to each, before the program starts") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  CHECK(on_two(cores, "$R -n 2 sh -c \"$LOOK\" | sort").output == sorted_lines(cores[0], cores[1]));
  CHECK(on_two(cores, "$R --bind core -n 2 sh -c \"$LOOK\" | sort").output ==
        sorted_lines(cores[0], cores[1]));
}

TEST_CASE("a single rank, ranks that are too many, and --bind none keep the caller's mask") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  for (const char* job : {"$R -n 1 sh -c \"$LOOK\"", "$R -q -n 3 sh -c \"$LOOK\" | sort -u",
                          "$R --bind-to none -n 2 sh -c \"$LOOK\" | sort -u"}) {
    INFO(job);
    const std::string got = on_two(cores, job).output;
    CHECK((got == cores[0] + "," + cores[1] + "\n" || got == cores[0] + "-" + cores[1] + "\n"));
  }
}

TEST_CASE("two jobs at once take different cores, of different users as well, and no file is left") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome got = on_two(cores,
                             "cp $R $T/rdmarun; chmod 755 $T/rdmarun; cd /; mkfifo $T/d/held\n"
                             "$R --bind core -n 1 sh -c \"$LOOK; echo > $T/d/held; sleep 1\" &\n"
                             "read a < $T/d/held; setpriv --reuid 1000 --regid 1000 --clear-groups "
                             "$T/rdmarun --bind core -n 1 sh -c \"$LOOK\"; "
                             "wait; rm $T/rdmarun");
  CHECK(got.output == cores[0] + "\n" + cores[1] + "\n");
  CHECK(got.errors.empty());
}

TEST_CASE("jobs started in the same instant never share a core") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  for (int round = 0; round < 10; ++round) {
    const outcome got =
        on_two(cores,  // both are there before either goes
               "for i in 1 2; do $R --bind core -n 1 sh -c \"$LOOK; : >\\$T/d/here.$i; "
               "until test -e \\$T/d/here.$((3 - i)); do sleep 0.02; done\" & done; wait");
    INFO(got.output);
    CHECK(got.errors.empty());  // it would say that it shares
    const bool apart =
        got.output == cores[0] + "\n" + cores[1] + "\n" || got.output == cores[1] + "\n" + cores[0] + "\n";
    CHECK(apart);
  }
}

TEST_CASE(
    "cores that another job holds: auto leaves its ranks unbound, an explicit policy shares and says so") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome got =
      on_two(cores,
             "mkfifo $T/d/held; $R -n 2 sh -c \"echo > $T/d/held; sleep 1.5\" &\n"
             "read a < $T/d/held; $R --report-bindings -n 2 true; $R --bind core -n 1 true; wait");
  CHECK(got.errors.find("not bound: processors " + cores[0]) != std::string::npos);
  CHECK(got.errors.find("(another job holds the cores)") != std::string::npos);
  CHECK(got.errors.find("rdmarun: another job has bound ranks to some of the cores") != std::string::npos);
}

TEST_CASE("kill -9 of rdmarun and its keeper frees the cores") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome got =
      on_two(cores,
             "mkfifo $T/d/held; $R --bind core -n 2 sh -c \"echo > $T/d/held; sleep 30\" & p=$!\n"
             "read a < $T/d/held; k=$(pgrep -P $p rdmarun-keeper); kill -STOP $p; kill -9 $k $p\n"
             "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; $R --report-bindings -n 2 true; done");
  CHECK(got.errors.rfind("rank 1 on") != std::string::npos);
  CHECK(got.errors.substr(got.errors.rfind("rank 1 on")).find(": bound to processor " + cores[1]) !=
        std::string::npos);
}

TEST_CASE("cores are held while a rank may live, although rdmarun has been killed") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome got =
      on_two(cores,
             "mkfifo $T/d/held; $R --bind core -n 2 sh -c \"echo > $T/d/held; sleep 30\" & p=$!\n"
             "read a < $T/d/held; k=$(pgrep -P $p rdmarun-keeper); kill -STOP $k; kill -9 $p; sleep 0.3\n"
             "$R --report-bindings -n 2 true; kill -CONT $k");
  CHECK(got.errors.find("(another job holds the cores)") != std::string::npos);
}

TEST_CASE("ranks stay inside taskset and cpuset, and share what there is quietly") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  for (const char* policy : {"auto", "core", "numa", "socket", "none"})
    for (const char* ranks : {"2", "4"}) {
      INFO(policy << " " << ranks);
      const outcome got = on_two(cores, std::string("taskset -c $Q $R --bind ") + policy + " -n " + ranks +
                                            " sh -c \"$LOOK\" | sort -u");
      CHECK(got.output == cores[1] + "\n");
      CHECK(got.errors == "rdmarun: " + std::string{ranks} + " ranks share 1 core\n");
    }
  const outcome set = on_two(cores, "g=/sys/fs/cgroup/cpuset/verbena-test-$$; mkdir $g && echo " + cores[1] +
                                " > $g/cpuset.cpus && echo 0 > $g/cpuset.mems || { rmdir $g; exit 77; }\n"
                                "for n in 2 4; do sh -c 'echo $$ > '$g'/cgroup.procs; exec $R -q --bind core "
                                "-n '$n' sh -c \"$LOOK\"' | sort -u; done; "
                                "rmdir $g");
  if (set.status == 77) {
    WARN("skipped in part: no cpuset of ours can be made here");
    return;
  }
  CHECK(set.output == cores[1] + "\n" + cores[1] + "\n");
  CHECK(set.errors.empty());
}

TEST_CASE("a quota bounds how many ranks are bound") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome got = shell(
      "g=/sys/fs/cgroup/cpu/verbena-bind-$$; mkdir $g && echo 50000 > $g/cpu.cfs_quota_us || { rmdir $g; "
      "exit 77; }\n"
      "sh -c 'echo $$ > '$g'/cgroup.procs; exec $R --report-bindings -n 2 true'; rmdir $g");
  if (got.status == 77) {
    WARN("skipped: no control group of ours can be made here");
    return;
  }
  CHECK(got.errors.find("not bound") != std::string::npos);
  CHECK(got.errors.find("(more ranks than cores)") != std::string::npos);
}

TEST_CASE("a masked /sys does not matter") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome got =
      on_two(cores, "mount -t tmpfs t /sys; $R -n 2 sh -c \"$LOOK\" | sort; $R -q -n 5 true && echo fine");
  CHECK(got.output == sorted_lines(cores[0], cores[1]) + "fine\n");
  CHECK(got.errors.empty());
}

TEST_CASE("where binding is forbidden jobs run, and only who asked for it by name is told") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const shell_command::variables forbid = {{"FORBID", FORBID_BINDING_PATH}};
  const outcome quiet = on_two(cores, "$FORBID $R -n 2 $C exchange | wc -l", forbid);
  CHECK(quiet.output == "2\n");
  CHECK(quiet.errors.empty());
  const outcome told = on_two(cores, "$FORBID $R --bind core -n 1 $C exchange", forbid);
  CHECK(told.status == 0);
  CHECK(told.errors.find("rank 0 on ") == 9);
  CHECK(told.errors.find("cannot be bound to its processors: Operation not permitted\n") !=
        std::string::npos);
}

TEST_CASE("two hardware threads are one core") {
  const auto cores = two_cores();
  if (cores.empty() || cores[0] != "0" || cores[1] != "1") return;
  const shell_command::variables threads = {{"HWLOC_SYNTHETIC", "pack:1 core:1 pu:2"}};
  CHECK(on_two(cores, "$R --bind core -n 1 sh -c \"$LOOK\"", threads).output == "0-1\n");
  CHECK(on_two(cores, "$R -n 2 --report-bindings true", threads).errors.find("not bound") !=
        std::string::npos);
}

TEST_CASE(
    "--map numa deals ranks over the memory domains in turn, --map core over the cores, and both bind") {
  const auto cores = two_cores();
  if (cores.empty() || cores[0] != "0" || cores[1] != "1") return;
  const shell_command::variables domains = {{"HWLOC_SYNTHETIC", "pack:2 numa:1 core:1 pu:1"}};
  const std::string say = " sh -c 'echo $VERBENA_RANK $(eval \"$LOOK\")' | sort";
  CHECK(on_two(cores, "$R -q -n 4 --map numa" + say, domains).output == "0 0\n1 1\n2 0\n3 1\n");
  CHECK(on_two(cores, "$R -q -n 4 --bind numa" + say, domains).output == "0 0\n1 0\n2 1\n3 1\n");
  CHECK(on_two(cores, "$R -q -n 1 --map core" + say, domains).output == "0 0\n");
  CHECK(on_two(cores, "$R -q -n 1 --map core --bind none" + say, domains).output == "0 0-1\n");
  const outcome wrong = shell("$R --map socket true");
  CHECK(wrong.status == 2);
  CHECK(wrong.errors.find("rdmarun: option '--map' takes slot, node, core or numa, not 'socket'") == 0);
}

TEST_CASE("a plain PMIx client finds its processors and its place") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const outcome bound = on_two(cores, "$R -n 2 $PLAIN | sort", {{"PLAIN", PLAIN_PMIX_PATH}});
  CHECK(bound.output.find("rank 0 cpuset hwloc:" + cores[0] + " locality hwloc:SK") == 0);
  CHECK(bound.output.find("rank 1 cpuset hwloc:" + cores[1] + " locality hwloc:SK") != std::string::npos);
  CHECK(bound.output.find(", as the kernel has it, no core with rank 0, its socket\n") != std::string::npos);
  const outcome free = on_two(cores, "$R -n 2 --bind none $PLAIN | sort", {{"PLAIN", PLAIN_PMIX_PATH}});
  CHECK(free.output.find("rank 0 cpuset nothing locality nothing\n") == 0);
  const outcome shared = on_two(cores, "$R -n 2 --bind socket $PLAIN | sort", {{"PLAIN", PLAIN_PMIX_PATH}});
  CHECK(shared.output.find("shares a core with rank 0, its socket") != std::string::npos);
}

TEST_CASE("the job page counts the cores that the ranks have for themselves") {
  const auto cores = two_cores();
  if (cores.empty()) return;
  const std::vector<std::pair<const char*, const char*>> table = {
      {"-n 2", "2"}, {"-n 2 --bind core", "2"}, {"-n 2 --bind none", "2"}, {"-n 1 --bind core", "1"},
      {"-n 3", "2"}, {"-n 3 --bind core", "1"},  // two of them sit on the same core
  };
  for (const auto& [options, count] : table) {
    INFO(options);
    CHECK(on_two(cores, "$R -q " + std::string{options} + " $C cores | sort -u").output ==
          std::string{count} + "\n");
  }
  CHECK(shell("taskset -c " + cores[1] + " $R -q -n 2 $C cores | sort -u").output == "1\n");
}
