// Runs inside a guest, as root: Linux' Yama module decides who may read whose memory (ptrace_scope). Whatever it says,
// the ranks of an ordinary user find out by a trial and exchange messages of all sizes.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

using Catch::Contains;
using namespace verbena::tests;

TEST_CASE("messages of all sizes arrive in every scope of ptrace") {
  const std::string scope_file = "/proc/sys/kernel/yama/ptrace_scope";
  REQUIRE(run("test -w " + scope_file).status == 0);  // a kernel without Yama proves nothing
  const scratch_folder folder;
  REQUIRE(run(fmt::format("meson install -C . --no-rebuild --quiet --destdir {}", folder.path())).status == 0);
  const std::string job = fmt::format("cd / && setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "
                                      "{0}/bin/rdmarun --explain -n 2 {0}/bin/vb_latency -m 0:1m -i 10 -x 1 -c",
                                      folder.path() + VERBENA_PREFIX);
  // 1: only a parent, unless the process permits others, which ranks do; 2: only who has the capability.
  for (const int scope : {0, 1, 2}) {
    INFO("ptrace_scope " << scope);
    REQUIRE(run(fmt::format("echo {} > {}", scope, scope_file)).status == 0);
    const finished end = run(job, std::chrono::seconds(100));
    INFO(end.output << end.errors);
    CHECK(end.status == 0);
    CHECK_THAT(end.output, Contains("\n1048576 "));
    CHECK_THAT(end.errors, Contains(scope < 2 ? "process_vm_readv proven" : "process_vm_readv refused"));
  }
}
