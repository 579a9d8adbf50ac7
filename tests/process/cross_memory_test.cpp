// Ranks that may not read each other's memory, because a filter refuses it or they live in user namespaces of
// their own: found out by a trial for each pair, never assumed; all sizes arrive right, and --explain says
// how.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

using Catch::Contains;
using verbena::tests::finished;
using verbena::tests::run;

namespace {

constexpr const char* pair_program = "benchmarks/vb_latency -m 0:4m -i 20 -x 2 -c";

finished run_pair(const std::string& first_wrapper, const std::string& second_wrapper) {
  return run(fmt::format("launcher/rdmarun --explain -n 1 {} {} : -n 1 {} {}", first_wrapper, pair_program,
                         second_wrapper, pair_program));
}

void must_be_right(const finished& end) {
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte checked") && Contains("\n4194304 "));
}

}  // namespace

TEST_CASE("where the kernel refuses cross-memory copies, large messages go through the rings",
          "[cross_memory]") {
  const std::string refuse = "tests/process/without_cross_memory";
  const finished end = run_pair(refuse, refuse);
  must_be_right(end);
  CHECK_THAT(end.errors, Contains("process_vm_readv refused (Operation not permitted)"));
  CHECK_THAT(end.errors, !Contains("copied by both ends"));
}

TEST_CASE("one rank that may and one that may not copy still exchange large messages", "[cross_memory]") {
  const std::string refuse = "tests/process/without_cross_memory";
  const bool first = GENERATE(true, false);
  const finished end = run_pair(first ? refuse : "", first ? "" : refuse);
  must_be_right(end);
  CHECK_THAT(end.errors, Contains("process_vm_readv refused") && Contains("copied by both ends"));
}

TEST_CASE("ranks in user namespaces of their own exchange large messages", "[cross_memory]") {
  if (run("unshare -Ur true").status != 0) {
    WARN("skipped: this kernel gives no user namespaces");
    return;
  }
  must_be_right(run_pair("unshare -Ur", "unshare -Ur"));
}

TEST_CASE("a plain run writes nothing to standard error", "[quiet]") {
  for (const char* program :
       {"vb_latency -m 0:64k -i 10", "vb_bw -m 1:64k -i 2", "vb_allreduce -m 4:64k -i 10"}) {
    const finished end = run(fmt::format("launcher/rdmarun -n 2 benchmarks/{}", program));
    INFO(program);
    CHECK(end.status == 0);
    CHECK(end.errors.empty());
  }
}
