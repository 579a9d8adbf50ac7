// Signals given to rdmarun reach the ranks, and what follows.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <csignal>

using namespace verbena::tests;

namespace {

const char* const saves =
    "exec $R -n 2 sh -c 'trap \"sleep 0.5; echo saved; exit 0\" TERM INT HUP; echo ready; while :; do sleep "
    "0.05; done'";

bool both_ready(const shell_command& command) {
  return command.says("ready\nready\n");
}

}  // namespace

TEST_CASE("TERM, INT and HUP reach the ranks, who may save their work; the status tells") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    INFO(signal);
    shell_command command{saves};
    REQUIRE(both_ready(command));
    ::kill(command.pid(), signal);
    const outcome got = command.wait(10);
    CHECK(got.status == 128 + signal);
    CHECK(got.output == "ready\nready\nsaved\nsaved\n");
    CHECK(got.errors.find("rdmarun") == std::string::npos);  // the shells may say that their sleep was ended
    CHECK(command.left_after(1).empty());
  }
}

TEST_CASE("USR1 and USR2 are passed on and mean nothing else") {
  shell_command command{
      "exec $R -n 2 sh -c 'trap \"echo one\" USR1; trap \"echo two; exit 0\" USR2; echo ready; while :; do "
      "sleep 0.05; done'"};
  REQUIRE(both_ready(command));
  ::kill(command.pid(), SIGUSR1);
  REQUIRE(command.says("one\none\n"));
  ::kill(command.pid(), SIGUSR2);
  const outcome got = command.wait(10);
  CHECK(got.status == 0);
  CHECK(got.output == "ready\nready\none\none\ntwo\ntwo\n");
}

TEST_CASE("a rank that is stopped sees what ends the job; one that runs is not told to continue") {
  // Rank 0 stops itself and is continued to hear of the TERM; rank 1 runs, and would say so if it got a CONT.
  shell_command command{
      "exec $R -n 2 sh -c 'e=; trap \"echo ended; e=1\" TERM; trap \"echo continued $VERBENA_RANK\" CONT; "
      "echo ready; "
      "[ $VERBENA_RANK = 0 ] && kill -STOP $$; until [ $e ]; do sleep 0.05; done; sleep 0.2'"};
  REQUIRE(both_ready(command));
  sleep_ms(100);
  ::kill(command.pid(), SIGTERM);
  const outcome got = command.wait(10);
  CHECK(got.status == 143);
  CHECK(got.seconds < 4);
  CHECK(got.output.find("continued 1") == std::string::npos);
  CHECK(got.output.find("ended\n") != got.output.rfind("ended\n"));  // both
}

TEST_CASE("a rank that is stopped sees that another has failed") {
  const outcome got = shell(
      "$R -q --abort-grace 5 -n 2 sh -c 'trap \"echo ended; exit 0\" TERM; [ $VERBENA_RANK = 0 ] || { until "
      "test -e $T/stops; "
      "do sleep 0.02; done; sleep 0.2; exit 3; }; echo > $T/stops; kill -STOP $$; while :; do sleep 0.05; "
      "done'");
  CHECK(got.status == 3);
  CHECK(got.output == "ended\n");
}

TEST_CASE("after TERM the grace passes, then KILL") {
  shell_command command{
      "exec $R --grace 0.4 -n 2 sh -c 'trap \"\" TERM; echo ready; while :; do sleep 0.05; done'"};
  REQUIRE(both_ready(command));
  const auto begin = verbena::base::steady_now();
  ::kill(command.pid(), SIGTERM);
  CHECK(command.wait(10).status == 143);
  const auto took = verbena::base::steady_now() - begin;
  CHECK(took > 300 * verbena::base::millisecond);
  CHECK(took < 1500 * verbena::base::millisecond);
  CHECK(command.left_after(1).empty());
}

TEST_CASE("without --grace three seconds are enough to save one's work") {
  shell_command command{
      "exec $R -n 2 sh -c 'trap \"sleep 3; echo saved > $T/rank.$VERBENA_RANK; exit 0\" TERM; echo ready; "
      "while :; do sleep "
      "0.05; done'"};
  REQUIRE(both_ready(command));
  ::kill(command.pid(), SIGTERM);
  CHECK(command.wait(15).status == 143);
  CHECK(command.files_left().size() == 2);
}

TEST_CASE("a second interrupt kills at once") {
  shell_command command{"exec $R -n 2 sh -c 'trap \"\" INT; echo ready; while :; do sleep 0.05; done'"};
  REQUIRE(both_ready(command));
  const auto begin = verbena::base::steady_now();
  ::kill(command.pid(), SIGINT);
  sleep_ms(100);
  ::kill(command.pid(), SIGINT);
  CHECK(command.wait(10).status == 130);
  CHECK(verbena::base::steady_now() - begin < 2 * verbena::base::second);
}

TEST_CASE("TERM ends rdmarun when no rank is left and the reader of the output has stopped") {
  const outcome got = shell(
      "mkfifo $T/slow; $R -n 1 seq 20000 > $T/slow & p=$!; sleep 60 < $T/slow & sleep 0.6; kill $p; wait $p; "
      "echo $?");
  CHECK(got.output == "143\n");
  CHECK(got.seconds < 5);
}

TEST_CASE("what nohup ignores stays ignored, in rdmarun and in the ranks") {
  shell_command command{"trap '' HUP; exec $R -n 2 sh -c 'echo ready; sleep 0.6; echo done'"};
  REQUIRE(both_ready(command));
  ::kill(command.pid(), SIGHUP);
  const outcome got = command.wait(10);
  CHECK(got.status == 0);
  CHECK(got.output == "ready\nready\ndone\ndone\n");
}

TEST_CASE("ranks start with the signals as the caller had them") {
  const char* look = "grep -E 'SigBlk|SigIgn' /proc/self/status";
  const outcome direct = shell(look);
  const outcome ranked = shell(std::string{"$R -n 1 "} + look);
  CHECK(ranked.output == direct.output);
}

TEST_CASE("a rank's 'kill 0' does not reach the other ranks or the caller") {
  const outcome got = shell(
      "$R -q -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then trap \"\" TERM; kill 0; exit 0; fi; sleep 0.3; echo "
      "alive'; echo $?");
  CHECK(got.output == "alive\n0\n");
}

TEST_CASE("a rank that cannot be killed is named, and waited for") {
  // A stopped keeper stands for a process that the kernel holds: it does not carry out the order either.
  shell_command command{
      "exec $R --grace 0.2 -n 2 sh -c 'trap \"\" TERM; echo ready; while :; do sleep 0.05; done'"};
  REQUIRE(both_ready(command));
  pid_t keeper = -1;
  for (const pid_t pid : children_of(command.pid()))
    if (command_name(pid) == "rdmarun-keeper") keeper = pid;
  REQUIRE(keeper > 0);
  ::kill(keeper, SIGSTOP);
  ::kill(command.pid(), SIGTERM);
  for (int i = 0; i < 100 && command.errors().find("rank 1 on ") == std::string::npos; ++i) sleep_ms(100);
  CHECK(command.errors().find("does not end although it is killed") != std::string::npos);
  ::kill(keeper, SIGCONT);
  CHECK(command.wait(20).status == 143);
  CHECK(command.left_after(1).empty());
}
