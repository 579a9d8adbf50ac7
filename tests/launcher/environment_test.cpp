// What the ranks find in their environment, and hostile surroundings of the launcher.
#include "shell.hpp"
#include "tests/sanitized.hpp"

#include <unistd.h>
#include <catch2/catch.hpp>

using namespace verbena::tests;

TEST_CASE("the documented variables tell each rank its place") {
  const outcome got = shell(
      "$R -q -n 3 sh -c 'echo $VERBENA_RANK $VERBENA_SIZE $VERBENA_LOCAL_RANK $VERBENA_LOCAL_SIZE' | sort");
  CHECK(got.output == "0 3 0 3\n1 3 1 3\n2 3 2 3\n");
}

TEST_CASE("variables pass, are set and removed") {
  const outcome got =
      shell("FOO='a b' BAR=1 $R -n 1 -x NEW=x=y --env BAR- -x FOO sh -c 'echo \"$FOO|$BAR|$NEW\"'");
  CHECK(got.output == "a b||x=y\n");
  const outcome fabric =
      shell("$R -n 1 --fabric shm --explain sh -c 'echo $VERBENA_FABRIC $VERBENA_EXPLAIN'");
  CHECK(fabric.output == "shm 1\n");
  CHECK(shell("$R -n 1 -x NOT_SET_ANYWHERE true").status == 2);
}

TEST_CASE("an outer job's variables do not reach the ranks") {
  const outcome got = shell(
      "PMI_RANK=3 PMI_SIZE=8 PMI2_ID=1 OMPI_COMM_WORLD_RANK=3 OMPI_UNIVERSE_SIZE=8 HYDI_CONTROL_FD=3 "
      "HYDRA_PROXY_ID=1 PMIX_RANK=9 "
      "PMIX_OUTER=1 PMIX_HOSTNAME=outer PMIX_MCA_gds=nosuch PMIX_MCA_psec=munge PMIX_MCA_of_mine=1 VERBENA_RANK=77 $R -n 1 sh -c 'echo $PMIX_RANK "
      "$VERBENA_RANK; env | grep -E "
      "\"^(PMI2?_|OMPI_(COMM|UNIV)|HYD|PMIX_(OUTER|HOSTNAME=outer|MCA_of|MCA_gds=nosuch|MCA_psec=munge))\"'");
  CHECK(got.output == "0 0\nPMIX_MCA_of_mine=1\n");  // the user's own tuning
}

TEST_CASE("the working directory is the caller's, or the one asked for") {
  CHECK(shell("cd /usr/lib; $R -n 1 pwd").output == "/usr/lib\n");
  CHECK(shell("$R --wdir /usr/lib -n 1 pwd").output == "/usr/lib\n");
  CHECK(shell("mkdir $T/gone; cd $T/gone; rmdir $T/gone; $R -n 2 $C exchange").status == 0);
}

TEST_CASE("odd temporary folders do not matter") {
  for (const std::string& folder : {std::string{"/no/such/folder"}, std::string{"/proc"},
                                    "/tmp/" + std::string(150, 'x'), std::string{}}) {
    INFO(folder);
    const outcome got = shell("TMPDIR='" + folder + "' $R -n 2 $C exchange");
    CHECK(got.status == 0);
    CHECK(got.errors.empty());
  }
}

TEST_CASE("two hundred ranks start with 1024 descriptors") {
  const outcome got =
      shell("ulimit -n 1024; $R -q -n 200 sh -c 'echo $VERBENA_RANK' | sort -n | uniq | wc -l", {}, 60);
  CHECK(got.output == "200\n");
}

TEST_CASE("the soft limit of open files is raised to the hard one") {
  CHECK(shell("ulimit -S -n 32; ulimit -H -n 4096; $R -q -n 8 sh -c 'ulimit -n' | sort -u").output ==
        "4096\n");
}

TEST_CASE("descriptors of rdmarun's own do not reach the ranks") {
  const outcome direct = shell("ls /proc/self/fd | wc -l");
  const outcome ranked = shell("$R -n 1 ls /proc/self/fd | wc -l");
  CHECK(std::stoi(ranked.output) == std::stoi(direct.output) + 1);  // the segment
}

TEST_CASE("a host name that resolves nowhere does not matter") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to rename a host of its own");
    return;
  }
  const outcome got =
      shell("unshare -u sh -c 'hostname no-such-host.invalid; $R -n 2 $C exchange && $R -n 1 false'");
  CHECK(got.status == 1);
  CHECK(got.errors.find("rank 0 on no-such-host.invalid: exited with status 1") != std::string::npos);
}

TEST_CASE("a small, read-only or missing /dev/shm does not matter") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to mount");
    return;
  }
  for (const char* mount : {"mount -t tmpfs -o size=1m tmpfs /dev/shm", "mount -t tmpfs -o ro tmpfs /dev/shm",
                            "mount -t tmpfs tmpfs /dev"}) {
    INFO(mount);
    const outcome got =
        shell("unshare -m sh -c '" + std::string{mount} +
              "; [ -e /dev/null ] || mknod -m 666 /dev/null c 1 3; $R -n 2 $C segment | sort'");
    CHECK(got.output == "rank 0 counts 2\nrank 1 counts 2\n");
  }
}

TEST_CASE("the program is searched for in the PATH that the ranks get") {
  const outcome got = shell(
      "mkdir $T/tools && printf '#!/bin/sh\\necho found\\n' > $T/tools/verbena-tool && chmod 755 "
      "$T/tools/verbena-tool\n"
      "$R -n 1 -x PATH=$T/tools:/bin:/usr/bin verbena-tool; PATH=$T/tools:$PATH $R -n 1 -x PATH=/bin "
      "verbena-tool; "
      "s=$?; rm -r $T/tools; exit $s");
  CHECK(got.output == "found\n");
  CHECK(got.status == 127);
}

TEST_CASE("a script without a first line takes any number of arguments") {
  const outcome got = shell(
      "echo 'echo $#' > $T/script && chmod 755 $T/script && $R -n 2 $T/script $(seq 1 20000); s=$?; rm "
      "$T/script; exit $s");
  CHECK(got.status == 0);
  CHECK(got.output == "20000\n20000\n");
}

TEST_CASE("the children of a shell that becomes rdmarun are neither waited for nor killed") {
  const outcome got = shell(
      "sh -c 'sleep 30 & echo $!; exec $0 -n 2 true' $R > $T/pid; echo $?; kill -0 $(cat $T/pid) && echo "
      "lives; kill "
      "$(cat $T/pid); rm $T/pid");
  CHECK(got.output == "0\nlives\n");
  CHECK(got.seconds < 10);
  // rdmarun kills only when its keeper is gone.
  const outcome killed = shell(
      "sh -c 'sleep 30 & echo $!; exec $0 -q -n 2 sleep 20' $R > $T/pid & p=$!; until k=$(pgrep -P $p "
      "rdmarun-keeper); do sleep "
      "0.02; done; sleep 0.3; kill -9 $k; wait $p; echo $?; kill -0 $(cat $T/pid) && echo lives; kill $(cat "
      "$T/pid)");
  CHECK(killed.output == "125\nlives\n");
  CHECK(killed.seconds < 10);
}

TEST_CASE("a limit on file sizes is named, and kills nobody") {
  const outcome got = shell("(ulimit -f 100000; $R -n 2 true)");
  CHECK(got.status == 125);
  CHECK(got.errors.find("ulimit -f") != std::string::npos);
}

TEST_CASE("sixteen ranks talk through shared memory however small /dev/shm is") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to mount");
    return;
  }
  for (const char* size : {"1m", "16m", "64m"})
    for (const char* ranks : {"4", "16"}) {
      INFO(size << " " << ranks);
      const outcome got = shell("unshare -m sh -c 'mount -t tmpfs -o size=" + std::string{size} +
                                " tmpfs /dev/shm; $R -q -n " + ranks + " $C context-ring | wc -l'");
      CHECK(got.output == std::string{ranks} + "\n");
      CHECK(got.errors.empty());
    }
}

TEST_CASE("a temporary folder that is read-only or full does not matter") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to mount");
    return;
  }
  for (const char* mount :
       {"mount -t tmpfs -o ro t $T", "mount -t tmpfs -o size=4k t $T; head -c 8192 /dev/zero > $T/x"}) {
    INFO(mount);
    const outcome got =
        shell("unshare -m sh -c '" + std::string{mount} + " 2>/dev/null; $R -n 2 $C exchange | wc -l'");
    CHECK(got.output == "2\n");
    CHECK(got.errors.empty());
  }
}

TEST_CASE("a PMIx store of the caller's choice does not matter") {
  for (const char* store : {"ds21", "ds12", "hash", "nosuch"}) {
    INFO(store);
    shell_command command{"PMIX_MCA_gds=" + std::string{store} + " $R -n 2 $C exchange | wc -l"};
    const outcome got = command.wait(10);
    CHECK(got.output == "2\n");
    CHECK(got.errors.empty());
    CHECK(command.files_left().empty());
  }
}

TEST_CASE("root needs no flag and gets no warning") {
  if (::geteuid() != 0) {
    WARN("skipped: this is an ordinary user");
    return;
  }
  const outcome got = shell("$R -n 1 $C exchange");
  CHECK(got.status == 0);
  CHECK(got.errors.empty());
  CHECK(shell("$R --allow-run-as-root -n 1 true").status == 0);
}

TEST_CASE("cron's surroundings are enough: no terminal, hardly a variable, no input") {
  const outcome got = shell(
      "cd /; env -i ${LSAN_OPTIONS:+LSAN_OPTIONS=$LSAN_OPTIONS} HOME=/nonexistent LOGNAME=x SHELL=/bin/sh "
      "PATH=/usr/bin:/bin setsid $R -n 2 $C exchange "
      "<&- | wc -l");
  CHECK(got.output == "2\n");
  CHECK(got.errors.empty());
  CHECK(shell("env -i ${LSAN_OPTIONS:+LSAN_OPTIONS=$LSAN_OPTIONS} $R -n 1 /bin/sh -c 'exit 5'").status == 5);
}

TEST_CASE("an ordinary user runs as root does") {
  if (::geteuid() != 0) {
    WARN("skipped: this is an ordinary user already");
    return;
  }
  // The build folder may be closed to others: run copies.
  const outcome got = shell(
      "cp $R $T/rdmarun; cp $C $T/client; chmod 755 $T/rdmarun $T/client; cd /; setpriv --reuid 1000 --regid "
      "1000 --clear-groups "
      "$T/rdmarun -n 2 $T/client segment | sort; setpriv --reuid 1000 --regid 1000 --clear-groups $T/rdmarun "
      "-n 2 unshare -Ur $T/client exchange >&2 || echo refused; rm $T/rdmarun $T/client");
  CHECK(got.output == "rank 0 counts 2\nrank 1 counts 2\n");  // in user namespaces of their own, too
  CHECK(got.errors.find("exchanged") != std::string::npos);
}

TEST_CASE("wrappers as ranks: shell, python, valgrind, gdb; and rdmarun itself under valgrind") {
  CHECK(shell("$R -n 2 sh -c 'sh -c \"$C exchange; true\"'").status == 0);
  CHECK(shell("$R -n 2 python3 -c 'import os,subprocess,sys; sys.exit(subprocess.call([os.environ[\"C\"], "
              "\"exchange\"]))'")
            .status == 0);
  if (sanitized) return;  // the sanitizers and these two exclude each other
  if (shell("command -v valgrind").status == 0) {
    CHECK(shell("$R -n 2 valgrind -q --error-exitcode=0 $C exchange 2>/dev/null", {}, 60).status == 0);
    CHECK(shell("valgrind -q $R -n 2 echo started 2>/dev/null", {}, 60).output == "started\nstarted\n");
  }
  if (shell("command -v gdb").status == 0) {
    const outcome got = shell("$R -n 1 gdb -batch -ex run -ex quit --args $C info", {}, 60);
    CHECK(got.output.find("rank 0 of 1 local 0 by rdmarun") != std::string::npos);
  }
}

TEST_CASE("a processor quota counts like a smaller machine") {
  // A control group of version 1 or 2 with half a processor.
  const outcome got = shell(
      "if [ -w /sys/fs/cgroup/cpu/cpu.shares ]; then g=/sys/fs/cgroup/cpu/verbena-test-$$; mkdir $g && echo "
      "50000 > "
      "$g/cpu.cfs_quota_us; elif [ -w /sys/fs/cgroup/cgroup.subtree_control ]; then "
      "g=/sys/fs/cgroup/verbena-test-$$; echo +cpu > "
      "/sys/fs/cgroup/cgroup.subtree_control; mkdir $g && echo '50000 100000' > $g/cpu.max; else exit 77; fi "
      "|| exit 77\n"
      "sh -c 'echo $$ > '$g'/cgroup.procs; exec $R sh -c \"echo size \\$VERBENA_SIZE\"'\n"
      "sh -c 'echo $$ > '$g'/cgroup.procs; exec $R -n 2 true'\nrmdir $g");
  if (got.status == 77) {
    WARN("skipped: no control group of ours can be made here");
    return;
  }
  CHECK(got.output == "size 1\n");
  CHECK(got.errors == "rdmarun: 2 ranks share 1 core\n");
}
