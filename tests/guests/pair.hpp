// A scenario that two guests play together: a process of its own in each, with a deadline, and a line between them. All cases of
// the program share one line; both guests run the same cases in the same order. VERBENA_GUEST: 1 or 2.
#pragma once

#include "line.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

namespace verbena::tests {

inline constexpr unsigned scenario_seconds = 60;

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

using scenario = void (*)(line&, int guest);

/// True: it ended as it should.
inline bool run_apart(scenario run, line& to, int guest, int killed_guest) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(scenario_seconds);
    int status = 0;
    try {
      run(to, guest);
    } catch (const std::exception& e) {
      fmt::print("  FAILED: {}\n", e.what());
      status = 1;
    }
    std::fflush(stdout);
    ::_exit(status);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  if (WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM)
    fmt::print("  FAILED: not through after {} s\n", scenario_seconds);
  return guest == killed_guest ? WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL
                               : WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/// The word between the two programs, and how far they are.
struct talk {
  int guest = number();
  line to{guest};
  std::uint32_t topic = 0;

  static int number() {
    const char* const text = std::getenv("VERBENA_GUEST");
    const int guest = text != nullptr ? std::atoi(text) : 0;
    expect(guest == 1 || guest == 2, "this runs in two guests; VERBENA_GUEST must say 1 or 2");
    return guest;
  }
};

inline void play(scenario run, int killed_guest = 0) {
  static talk both;
  both.to.talk_about(++both.topic);
  both.to.meet();
  both.to.talk_about(++both.topic);  // the children's
  CHECK(run_apart(run, both.to, both.guest, killed_guest));
}

}  // namespace verbena::tests
