// docs/settings.md shows the table of settings that is in force.
#include "command.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace verbena::tests;

TEST_CASE("docs/settings.md is what rdmarun --settings prints", "[docs]") {
  const finished printed = run("launcher/rdmarun --settings");
  REQUIRE(printed.status == 0);
  std::ifstream file(source_root() + "/docs/settings.md");
  std::stringstream text;
  text << file.rdbuf();
  INFO("docs/settings.md must contain the output of build/launcher/rdmarun --settings");
  CHECK(text.str().find(printed.output) != std::string::npos);
}
