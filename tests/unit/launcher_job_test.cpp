#include "launcher/job.hpp"

#include <sys/wait.h>
#include <catch2/catch.hpp>

#include <cerrno>
#include <csignal>

using namespace verbena::launcher;

namespace {

job running(std::uint32_t size) {
  job j{size, "here", 0};
  for (std::uint32_t r = 0; r < size; ++r) j.started(r, static_cast<pid_t>(100 + r));
  return j;
}
constexpr int exit_code(int status) {
  return W_EXITCODE(status, 0);
}
constexpr verbena::base::nanoseconds later = 1'500'000'000;

}  // namespace

TEST_CASE("a program of which no rank joins ends with 0") {
  job j = running(3);
  for (std::uint32_t r = 0; r < 3; ++r) CHECK_FALSE(j.exited(r, exit_code(0), later));
  CHECK(j.all_ended());
  CHECK(j.status() == 0);
  CHECK(j.line().empty());
}

TEST_CASE("the first rank to fail gives status and line") {
  job j = running(3);
  CHECK_FALSE(j.exited(0, exit_code(0), later));
  CHECK(j.exited(2, exit_code(7), later));
  CHECK(j.exited(1, SIGKILL, later));
  CHECK(j.status() == 7);
  CHECK(j.line() == "rdmarun: rank 2 on here: exited with status 7 after 1.50 s");
}

TEST_CASE("a signal gives 128 and its number") {
  job j = running(1);
  CHECK(j.exited(0, SIGSEGV, later));
  CHECK(j.status() == 139);
  CHECK(j.line() == "rdmarun: rank 0 on here: killed by signal 11 (Segmentation fault) after 1.50 s");
}

TEST_CASE("joined and left is a good end, joined and not left is none") {
  job j = running(2);
  j.joined(0, 1);
  j.joined(1, 1);
  j.left(0);
  CHECK_FALSE(j.exited(0, exit_code(0), later));
  CHECK(j.exited(1, exit_code(0), later));
  CHECK(j.status() == 1);
  CHECK(j.line().find("without leaving the job") != std::string::npos);
}

TEST_CASE("ending without joining is a failure once others have joined, before or after") {
  SECTION("they had joined") {
    job j = running(2);
    j.joined(0, 1);
    CHECK(j.exited(1, exit_code(0), later));
  }
  SECTION("they join later") {
    job j = running(2);
    CHECK_FALSE(j.exited(1, exit_code(0), later));
    CHECK(j.joined(0, later) == std::optional<std::uint32_t>{1});
    CHECK(
        j.line().find("rank 1 on here: ended with status 0 without joining the job that rank 0 has joined") !=
        std::string::npos);
  }
  SECTION("they joined and left again: nobody waited") {
    job j = running(2);
    j.joined(0, 1);
    j.left(0);
    CHECK_FALSE(j.exited(1, exit_code(0), later));
    CHECK_FALSE(j.exited(0, exit_code(0), later));
    CHECK(j.status() == 0);
    return;
  }
}

TEST_CASE("an abort's code is the status, and never 0") {
  const auto status_of = [](int code) {
    job j = running(2);
    CHECK(j.aborted(1, code, "no more", later));
    CHECK(j.exited(1, exit_code(9), later));
    CHECK(j.line().find("rank 1 on here: aborted the job with status") != std::string::npos);
    CHECK(j.line().find(": no more") != std::string::npos);
    return j.status();
  };
  CHECK(status_of(5) == 5);
  CHECK(status_of(256) == 1);
  CHECK(status_of(0) == 1);
}

TEST_CASE("failed starts: 127 for no such program, 126 for the rest") {
  job missing{1, "here", 0};
  CHECK(missing.start_failed(0, start_step::execute, ENOENT, "prog"));
  CHECK(missing.status() == 127);
  CHECK(missing.all_ended());
  job forbidden{1, "here", 0};
  CHECK(forbidden.start_failed(0, start_step::execute, EACCES, "prog"));
  CHECK(forbidden.status() == 126);
  CHECK(forbidden.line() == "rdmarun: rank 0 on here: cannot run 'prog': Permission denied");
  job lost{1, "here", 0};
  CHECK(lost.start_failed(0, start_step::enter_directory, ENOENT, "dir"));
  CHECK(lost.status() == 126);
  CHECK(lost.line().find("cannot enter the directory 'dir'") != std::string::npos);
}

TEST_CASE("a signal to the launcher or the time limit decides if it comes first, and only then") {
  job told = running(1);
  told.signalled(SIGTERM);
  told.exited(0, exit_code(0), later);
  CHECK(told.status() == 143);
  job slow = running(1);
  slow.timed_out();
  slow.exited(0, SIGTERM, later);
  CHECK(slow.status() == 124);
  job failed = running(2);
  failed.exited(0, exit_code(3), later);
  failed.signalled(SIGTERM);
  failed.timed_out();
  CHECK(failed.status() == 3);
}
