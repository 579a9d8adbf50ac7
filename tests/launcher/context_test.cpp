// Programs that use the library's public face, under rdmarun: how they end, and with which status.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <csignal>

using namespace verbena::tests;

TEST_CASE("ranks of a context talk and leave in good order") {
  const outcome got = shell("$R -q -n 4 $C context-ring | sort");
  CHECK(got.output == "rank 0 sums 6\nrank 1 sums 6\nrank 2 sums 6\nrank 3 sums 6\n");
  CHECK(shell("$R -q -n 1 $C context-ring").output == "rank 0 sums 0\n");
  CHECK(shell("$C context-ring").output == "rank 0 sums 0\n");
}

TEST_CASE("a rank may leave long before the others") {
  CHECK(shell("$R -q -n 3 $C context-late").status == 0);
}

TEST_CASE("context::abort ends the job with its status and says why") {
  shell_command command{"$R -n 2 $C context-abort"};
  const outcome got = command.wait(10);
  CHECK(got.status == 6);
  CHECK(got.errors.find("rank 1 on ") == 9);
  CHECK(got.errors.find("aborted the job with status 6") != std::string::npos);
  CHECK(got.errors.find("no more numbers") != std::string::npos);
  CHECK(got.seconds < 3);
  CHECK(command.left_after(1).empty());
}

TEST_CASE("an exception or an exit in one rank ends the job while others wait for it") {
  for (const char* how : {"context-throw", "context-exit"}) {
    INFO(how);
    shell_command command{std::string{"$R -q -n 2 $C "} + how};
    const outcome got = command.wait(10);
    CHECK(got.status != 0);
    CHECK(got.status != -1);
    CHECK(got.seconds < 4);
    CHECK(command.left_after(1).empty());
    CHECK(command.files_left().empty());
  }
}

TEST_CASE("a rank of a context that is killed ends the job within a second") {
  shell_command command{"exec $R -q -n 2 sh -c 'echo $$; exec $C context-wait'"};
  while (command.output().size() < 4) sleep_ms(5);
  sleep_ms(300);
  const auto begin = verbena::base::steady_now();
  ::kill(std::stoi(command.output()), SIGKILL);
  CHECK(command.wait(10).status == 137);
  CHECK(verbena::base::steady_now() - begin < verbena::base::second);
  CHECK(command.left_after(1).empty());
}
