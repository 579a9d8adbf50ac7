// Whatever dies, in whatever order: no process, no file and no segment is left one second later.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <random>

using namespace verbena::tests;

namespace {

// Ranks that join and sleep, each with an orphaned grandchild in another session that ignores what can be
// ignored.
const char* const stubborn =
    "exec $R -q -n 3 sh -c 'trap \"\" TERM HUP INT; (setsid sh -c \"trap \\\"\\\" TERM HUP INT; sleep 60\" "
    "&); "
    "exec $C sleep 60'";

pid_t keeper_of(pid_t rdmarun) {
  for (const pid_t pid : children_of(rdmarun))
    if (command_name(pid) == "rdmarun-keeper") return pid;
  return -1;
}

void check_nothing_left(const shell_command& command, double patience_s = 1) {
  const auto left = command.left_after(patience_s);
  for (const pid_t pid : left) UNSCOPED_INFO("left: " << pid << " " << command_name(pid));
  CHECK(left.empty());
  CHECK(command.files_left().empty());
}

}  // namespace

TEST_CASE("kill -9 of rdmarun leaves nothing, grandchildren in other sessions included") {
  shell_command command{stubborn};
  REQUIRE(command.says("rank 2 sleeps"));
  CHECK(command.alive().size() >= 8);
  ::kill(command.pid(), SIGKILL);
  check_nothing_left(command);
}

TEST_CASE("kill -9 of the keeper ends the job with 125 and leaves nothing") {
  shell_command command{stubborn};
  REQUIRE(command.says("rank 2 sleeps"));
  ::kill(keeper_of(command.pid()), SIGKILL);
  CHECK(command.wait(5).status == 125);
  check_nothing_left(command);
}

TEST_CASE("rdmarun finds the orphans of a killed keeper however late it looks") {
  shell_command command{stubborn};
  REQUIRE(command.says("rank 2 sleeps"));
  const pid_t keeper = keeper_of(command.pid());
  ::kill(command.pid(), SIGSTOP);
  ::kill(keeper, SIGKILL);
  sleep_ms(200);  // all orphans have found their new parent
  CHECK(command.alive().size() >= 6);
  ::kill(command.pid(), SIGCONT);
  CHECK(command.wait(5).status == 125);
  check_nothing_left(command);
}

TEST_CASE("kill -9 of rdmarun and its keeper in the same instant ends all ranks") {
  shell_command command{"exec $R -q -n 3 $C sleep 60"};
  REQUIRE(command.says("rank 2 sleeps"));
  const pid_t keeper = keeper_of(command.pid());
  ::kill(command.pid(), SIGSTOP);  // so that neither sees the other die first
  ::kill(keeper, SIGKILL);
  ::kill(command.pid(), SIGKILL);
  check_nothing_left(command);
}

TEST_CASE("kill -9 of a rank ends the others within a second, with its status") {
  shell_command command{"exec $R -q -n 3 sh -c 'trap \"\" TERM; exec $C sleep 60'"};
  REQUIRE(command.says("rank 2 sleeps"));
  const auto ranks = children_of(keeper_of(command.pid()));
  REQUIRE(ranks.size() == 3);
  const auto begin = verbena::base::steady_now();
  ::kill(ranks[1], SIGKILL);
  CHECK(command.wait(10).status == 137);
  CHECK(verbena::base::steady_now() - begin < verbena::base::second);
  check_nothing_left(command);
}

TEST_CASE("--abort-grace is the time that the others have when one rank has failed") {
  const std::string job =
      " -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then sleep 0.2; exit 3; fi; trap \"sleep 1; echo saved; exit "
      "0\" TERM; while "
      ":; do sleep 0.05; done'";
  const outcome patient = shell("$R -q --abort-grace 5" + job);
  CHECK(patient.status == 3);
  CHECK(patient.output == "saved\n");
  CHECK(patient.seconds < 4.5);  // and no longer than they need
  const outcome hurried = shell("$R -q --abort-grace 0.1" + job);
  CHECK(hurried.status == 3);
  CHECK(hurried.output.empty());
}

TEST_CASE("background children left at a normal end are ended too, and do not delay it") {
  shell_command command{"exec $R -n 2 sh -c 'setsid sleep 60 & exit 0'"};
  const outcome got = command.wait(10);
  CHECK(got.status == 0);
  CHECK(got.seconds < 2);
  check_nothing_left(command);
}

TEST_CASE("a rank that forks without end is ended with its descent") {
  shell_command command{
      "exec $R -q --timeout 1 --grace 0.2 -n 1 sh -c 'f() { sleep 0.01; f & f; }; (ulimit -u 4000; f)'"};
  CHECK(command.wait(20).status == 124);
  check_nothing_left(command, 3);
}

TEST_CASE("kill -9 of rdmarun, and of a rank, at random moments: nothing is left") {
  std::random_device seed;
  const auto chosen = seed();
  INFO("seed " << chosen);
  std::mt19937 random{chosen};
  for (int i = 0; i < 50; ++i) {
    INFO("round " << i);
    shell_command command{"exec $R -q -n 3 sh -c 'setsid sleep 60 & exec $C sleep 60'"};
    sleep_ms(static_cast<int>(random() % 80));
    if (i % 2 == 0) {
      ::kill(command.pid(), SIGKILL);
    } else {
      std::vector<pid_t> ranks;
      for (int tries = 0; ranks.empty() && tries < 200; ++tries) {
        const pid_t keeper = keeper_of(command.pid());
        if (keeper > 0) ranks = children_of(keeper);
        if (ranks.empty()) sleep_ms(2);
      }
      REQUIRE_FALSE(ranks.empty());
      ::kill(ranks[random() % ranks.size()], SIGKILL);
      // The victim may have been the background child, which has come to the keeper and matters to nobody.
      if (command.left_after(0.9).size() > 0) ::kill(command.pid(), SIGKILL);
    }
    check_nothing_left(command);
  }
}
