// rdmarun on a terminal: what the keyboard sends reaches each rank once, and job control works.
#include "base/clock.hpp"
#include "shell.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>

using namespace verbena::tests;

namespace {

/// A command as the foreground job of a terminal of its own.
class terminal {
 public:
  explicit terminal(const std::string& command) {
    pid_ = ::forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::setenv("R", RDMARUN_PATH, 1);
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
      ::_exit(126);
    }
  }
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }

  pid_t pid() const { return pid_; }
  void type(const std::string& keys) {
    REQUIRE(::write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  int count(const std::string& text) const {
    int found = 0;
    for (std::size_t at = 0; (at = seen_.find(text, at)) != std::string::npos; at += text.size()) ++found;
    return found;
  }
  /// Reads until `text` has been seen `times` times; false after five seconds.
  bool sees(const std::string& text, int times = 1) {
    const auto end = verbena::base::steady_now() + 5 * verbena::base::second;
    while (count(text) < times) {
      if (verbena::base::steady_now() > end) return false;
      read_for(20);
    }
    return true;
  }
  void read_for(int ms) {
    pollfd ready{fd_, POLLIN, 0};
    char bytes[4096];
    if (::poll(&ready, 1, ms) <= 0) return;
    const ssize_t got = ::read(fd_, bytes, sizeof bytes);
    if (got > 0) seen_.append(bytes, static_cast<std::size_t>(got));
  }
  /// The wait status of its end or stop; -1 after five seconds.
  int wait(int flags = 0) {
    const auto end = verbena::base::steady_now() + 5 * verbena::base::second;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG | flags) == 0) {
      if (verbena::base::steady_now() > end) return -1;
      read_for(10);
    }
    ended_ = !WIFSTOPPED(status);
    for (int i = 0; i < 5; ++i) read_for(10);
    return status;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  bool ended_ = false;
  std::string seen_;
};

}  // namespace

TEST_CASE("Ctrl-C reaches each rank once") {
  terminal screen{
      "$R -n 2 python3 -c 'import signal,time,sys\n"
      "def f(*a): print(\"caught\",flush=True)\n"
      "signal.signal(signal.SIGINT,f); print(\"ready\",flush=True)\n"
      "e=time.time()+2.5\n"
      "while time.time()<e: time.sleep(0.05)'"};
  REQUIRE(screen.sees("ready", 2));
  pid_t keeper = -1;
  for (const pid_t pid : children_of(screen.pid()))
    if (command_name(pid) == "rdmarun-keeper") keeper = pid;
  REQUIRE(keeper > 0);
  // Two signals that follow closely are one: what rdmarun sends comes after rank 0 has seen what the terminal sent.
  ::kill(keeper, SIGSTOP);
  screen.type("\x03");
  const bool first_alone = screen.sees("caught");
  ::kill(keeper, SIGCONT);
  CHECK(first_alone);
  const int status = screen.wait();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(screen.count("caught") == 2);
}

TEST_CASE("Ctrl-C pressed again kills ranks that ignore it") {
  terminal screen{"$R --grace 60 -n 2 sh -c 'trap \"\" INT; echo ready; while :; do sleep 0.05; done'"};
  REQUIRE(screen.sees("ready", 2));
  screen.type("\x03");
  for (int i = 0; i < 10; ++i) screen.read_for(50);  // pressed faster than it is read, two are one
  screen.type("\x03");
  const int status = screen.wait();
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
}

TEST_CASE("rank 0 reads the terminal, and a prompt stands before it") {
  terminal screen{
      "$R -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then printf \"name? \"; fi; read a; echo \"got $a\"'"};
  REQUIRE(screen.sees("name? "));
  screen.type("Ada\n");
  CHECK(screen.wait() == 0);
  CHECK(screen.count("got Ada") == 1);
}

TEST_CASE("Ctrl-Z stops the job with its ranks, and CONT goes on") {
  terminal screen{"$R -n 2 sh -c 'while :; do echo tick-$VERBENA_RANK; sleep 0.05; done'"};
  REQUIRE(screen.sees("tick-0", 2));
  REQUIRE(screen.sees("tick-1", 2));
  screen.type("\x1a");
  CHECK(WIFSTOPPED(screen.wait(WUNTRACED)));
  for (int i = 0; i < 10; ++i) screen.read_for(20);
  const int before = screen.count("tick");
  for (int i = 0; i < 10; ++i) screen.read_for(30);
  CHECK(screen.count("tick") == before);
  const int of_second = screen.count("tick-1");
  ::kill(-screen.pid(), SIGCONT);
  CHECK(screen.sees("tick", before + 4));
  CHECK(screen.sees("tick-1", of_second + 2));  // rank 0 alone is in the group that the shell continues
  screen.type("\x03");
  CHECK(WIFEXITED(screen.wait()));
}

TEST_CASE("in the background of a terminal a job that reads nothing is not stopped") {
  terminal screen{
      "bash -c 'set -m; $R -n 2 sh -c \"sleep 0.2; echo done-\\$VERBENA_SIZE\" & wait; echo over $?'"};
  CHECK(screen.sees("over 0"));
  CHECK(screen.count("done-2") == 2);
  CHECK(WIFEXITED(screen.wait()));
}

TEST_CASE("a change of the window's size reaches the ranks") {
  terminal screen{
      "$R -n 2 python3 -c 'import signal,time\n"
      "seen=[]\n"
      "def changed(*a): seen.append(1); print(\"changed\",flush=True)\n"
      "signal.signal(signal.SIGWINCH,changed); print(\"ready\",flush=True)\n"
      "end=time.time()+20\n"
      "while not seen and time.time()<end: time.sleep(0.01)'"};
  REQUIRE(screen.sees("ready", 2));
  ::kill(-screen.pid(), SIGWINCH);
  CHECK(screen.wait() == 0);
  CHECK(screen.count("changed") >= 2);
}
