// Ranks start side by side, while libpmix's server comes up: whatever fails meanwhile, the statuses are right and nothing is left.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace verbena::tests;

namespace {

auto lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("no rank runs and nothing is left when the PMIx server cannot start") {
  shell_command command{"PMIX_MCA_ptl_base_if_include=nosuch $R -q -n 4 sh -c 'echo ran; sleep 20'"};
  const outcome got = command.wait(10);
  CHECK(got.status == 125);
  CHECK(got.output.empty());
  CHECK(command.left_after(0).empty());
}

TEST_CASE("options that are wrong leave nothing of what had begun") {
  shell_command command{"$R --nonsense"};
  const outcome got = command.wait(10);
  CHECK(got.status == 2);
  CHECK(lines(got.errors) == 1);
  CHECK(command.left_after(0).empty());
}

TEST_CASE("of ranks that start side by side, those that cannot are told from those that end at once") {
  for (int round = 0; round < 3; ++round) {
    const outcome got = shell("$R -n 20 true : -n 12 /nowhere : -n 20 true 2>&1 | grep -v share");
    CHECK(lines(got.output) == 1);
    CHECK(got.output.find("cannot run '/nowhere': No such file") != std::string::npos);
    CHECK(shell("$R -q -n 20 true : -n 1 /nowhere : -n 20 true").status == 127);
    CHECK(shell("$R -q -n 40 sh -c 'exit $((VERBENA_RANK == 17 ? 9 : 0))'").status == 9);
  }
}
