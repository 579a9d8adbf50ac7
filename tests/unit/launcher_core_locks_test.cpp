// Cores are held by locks that vanish with their holder, whatever ends it.
#include "launcher/core_locks.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <string>

using namespace verbena::launcher;

namespace {

using cpus = std::vector<unsigned>;

/// A file of the test's own to lock, so that jobs on this machine are not disturbed.
class lock_file {
 public:
  lock_file() {
    const int fd = ::mkstemp(path_.data());
    REQUIRE(fd >= 0);
    ::close(fd);
  }
  lock_file(const lock_file&) = delete;
  lock_file& operator=(const lock_file&) = delete;
  ~lock_file() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/verbena-locks-XXXXXX";
};

}  // namespace

TEST_CASE("what one job holds the others see, and cannot take; what is its own it does not see") {
  const lock_file file;
  const core_locks one{file.path()}, two{file.path()};
  CHECK(two.held_by_others({0, 1, 2, 3}) == cpus{});
  REQUIRE(one.take({1, 3, 4, 5, 200}));
  CHECK(two.held_by_others({0, 1, 2, 3, 4, 6, 200, 201}) == cpus{1, 3, 4, 200});
  CHECK(one.held_by_others({0, 1, 2, 3, 4, 5}) == cpus{});
  CHECK_FALSE(two.take({0, 1, 2}));
  CHECK(one.held_by_others({0, 1, 2}) == cpus{});  // all or nothing
  CHECK_FALSE(two.take({0, 2, 4}));                // the last of several ranges
  CHECK(one.held_by_others({0, 1, 2}) == cpus{});
  CHECK(two.take({0, 2}));
  CHECK(one.held_by_others({0, 1, 2, 3}) == cpus{0, 2});
}

TEST_CASE("many holders are all found") {
  const lock_file file;
  std::vector<core_locks> jobs;
  cpus all, odd;
  for (unsigned cpu = 0; cpu < 64; ++cpu) {
    all.push_back(cpu);
    if (cpu % 2 == 0) continue;
    odd.push_back(cpu);
    jobs.emplace_back(file.path());
    REQUIRE(jobs.back().take({cpu}));
  }
  CHECK(core_locks{file.path()}.held_by_others(all) == odd);
}

TEST_CASE("the locks go with their holder, by kill -9 as well, and not before its children") {
  const lock_file file;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const core_locks locks{file.path()};
    const bool taken = locks.take({0, 1});
    const pid_t child = ::fork();  // keeps the descriptor, as the keeper does
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    const pid_t answer = taken ? child : -1;
    (void)!::write(ready[1], &answer, sizeof answer);
    ::pause();
    ::_exit(0);
  }
  pid_t child = -1;
  REQUIRE(::read(ready[0], &child, sizeof child) == sizeof child);
  REQUIRE(child > 0);
  const core_locks other{file.path()};
  CHECK(other.held_by_others({0, 1, 2}) == cpus{0, 1});
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(other.held_by_others({0, 1, 2}) == cpus{0, 1});
  ::kill(child, SIGKILL);
  for (int i = 0; i < 1000 && !other.held_by_others({0, 1})->empty(); ++i) ::usleep(1000);
  CHECK(other.held_by_others({0, 1, 2}) == cpus{});
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a lock on the whole file holds all cores, and no file is no knowledge") {
  const lock_file file;
  const core_locks locks{file.path()};
  const int fd = ::open(file.path().c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  REQUIRE(::fcntl(fd, F_OFD_SETLK, &whole) == 0);
  CHECK(locks.held_by_others({0, 5}) == cpus{0, 5});
  ::close(fd);
  CHECK(locks.held_by_others({0, 5}) == cpus{});
  const core_locks nowhere{"/no/such/file"};
  CHECK_FALSE(nowhere.held_by_others({0}).has_value());
  CHECK_FALSE(nowhere.take({0}));
}
