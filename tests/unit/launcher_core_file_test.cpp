#include "launcher/core_file.hpp"

#include <catch2/catch.hpp>

using verbena::launcher::describe_core;

TEST_CASE("a core file is named where the pattern allows it") {
  CHECK(describe_core("core", false, 7, "/at") == "core dumped to '/at/core'");
  CHECK(describe_core("core", true, 7, "/at") == "core dumped to '/at/core.7'");
  CHECK(describe_core("core.%p", true, 7, "/at") == "core dumped to '/at/core.7'");
  CHECK(describe_core("/var/cores/%%-%P", false, 7, "/at") == "core dumped to '/var/cores/%-7'");
  CHECK(describe_core("|/usr/lib/systemd/systemd-coredump %P %u", false, 7, "/at") ==
        "core handed to '/usr/lib/systemd/systemd-coredump'");
  CHECK(describe_core("core.%e", false, 7, "/at") == "core dumped");
  CHECK(describe_core("core.%", false, 7, "/at") == "core dumped");
  CHECK(describe_core("", false, 7, "/at") == "core dumped");
}
