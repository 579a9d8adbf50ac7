// Random jobs under load: ranks that exit, crash, hang, fork and flood, in any mixture, end with a status
// that one of them explains, with complete output where nobody failed, and nothing is left.
// VERBENA_RANDOM_RUNS sets the number.
#include "shell.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

using namespace verbena::tests;

namespace {

struct behaviour {
  std::string script;
  int status;    ///< of a rank alone; 0: it does not fail
  int lines;     ///< of output
  bool endless;  ///< does not end by itself
};

behaviour choose(std::mt19937& random) {
  const double pause = static_cast<double>(random() % 20) / 100;
  switch (random() % 10) {
    case 0:
      return {fmt::format("sleep {}; exit 3", pause), 3, 0, false};
    case 1:
      return {fmt::format("sleep {}; kill -SEGV $$", pause), 139, 0, false};
    case 2:
      return {"trap \"\" TERM INT; while :; do sleep 0.05; done", 0, 0, true};
    case 3:
      return {"setsid sleep 60 & sleep 60 & echo forked", 0, 1, false};
    case 4:
      return {"seq 20000", 0, 20000, false};
    case 5:
      return {"exec $C exchange", 0, 1, false};
    default:
      return {fmt::format("sleep {}; printf \"a\\nb\\n\"", pause), 0, 2, false};
  }
}

}  // namespace

TEST_CASE("random jobs under load end right and leave nothing") {
  const char* wanted = std::getenv("VERBENA_RANDOM_RUNS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 25;
  shell_command load{"while :; do :; done & while :; do :; done"};
  std::mt19937 random{std::random_device{}()};
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint32_t>(random());
    INFO("round " << round << ", seed " << seed);
    std::mt19937 dice{seed};
    const auto size = 1 + dice() % 6;
    std::string scripts;
    std::set<int> failures;
    int lines = 0;
    bool endless = false, joins = false, joins_not = false;
    for (std::uint32_t r = 0; r < size; ++r) {
      const behaviour b = choose(dice);
      scripts += fmt::format("{}) {} ;; ", r, b.script);
      if (b.status != 0) failures.insert(b.status);
      lines += b.lines;
      endless = endless || b.endless;
      const bool joining = b.script.find("exchange") != std::string::npos;
      joins = joins || joining;
      joins_not = joins_not || !joining;
    }
    if (joins && joins_not) failures.insert({1, 124});  // a rank that joins waits for one that never does
    if (endless) failures.insert(124);
    shell_command command{fmt::format(
        "$R -q --timeout 4 --grace 0.2 --abort-grace 0.2 -n {} sh -c '\ncase $VERBENA_RANK in {} esac'", size,
        scripts)};
    INFO(scripts);
    const outcome got = command.wait(20);
    INFO(got.errors);
    if (failures.empty()) {
      CHECK(got.status == 0);
      CHECK(std::count(got.output.begin(), got.output.end(), '\n') == lines);
    } else {
      INFO("status " << got.status);
      CHECK(failures.count(got.status) == 1);
    }
    const auto left = command.left_after(1);
    CHECK(left.empty());
    CHECK(command.files_left().empty());
  }
}
