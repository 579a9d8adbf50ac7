// Runs in the first of two guests that are hosts of one job (bed.py --guests 2 --ssh): rdmarun starts the ranks on both by ssh,
// and they talk over verbs. The process suite runs beside it, on the same hosts.
#include "command.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <string>

using Catch::Contains;
using namespace verbena::tests;

namespace {

constexpr std::chrono::seconds patience{90};  // the processors are emulated

/// One rank on each guest, or more in turn.
finished on_both(const std::string& program, const std::string& options = "") {
  return run(fmt::format("launcher/rdmarun {} {}", options, program), patience);
}

/// A number that a file of guest 1 or 2 holds.
long number_in(int guest, const std::string& path) {
  const finished end = run(fmt::format("ssh g{} cat {}", guest, path));
  INFO(end.errors);
  REQUIRE(end.status == 0);
  return std::stol(end.output);
}

long packets_of(int guest) {
  return number_in(guest, "/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts");
}
long bytes_of(int guest) {
  return number_in(guest, "/sys/class/net/eth0/statistics/tx_bytes");
}

/// Programs of jobs, their shared memory and what they had of the device, on this guest. Empty once all is gone.
std::string left_here(std::chrono::seconds within) {
  std::string seen;
  for (const auto end = std::chrono::steady_clock::now() + within; std::chrono::steady_clock::now() < end;
       ::usleep(100'000)) {
    seen = run("ps -eo stat=,comm= | grep -v ^Z | grep -E ' (rdmarun|vb_|random_traffic|wait_long)'; ls "
               "/dev/shm; "
               "rdma resource show qp | grep -v -E 'type (GSI|SMI)'; rdma resource show mr")
               .output;
    if (seen.empty()) break;
  }
  return seen;
}

}  // namespace

TEST_CASE("ranks of two machines take verbs by themselves, and all that they send goes there",
          "[verbs_hosts]") {
  constexpr long path_mtu = 1024, sent = 4L << 20;
  const long packets[] = {packets_of(1), packets_of(2)}, bytes[] = {bytes_of(1), bytes_of(2)};
  const finished end = on_both("benchmarks/vb_latency -m 1m:1m -i 4 -x 0 -c",
                               "-q --explain --ssh 'ssh -S none'");  // a fresh login
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte checked"));
  for (const int guest : {1, 2})
    CHECK_THAT(
        end.errors,
        Contains(fmt::format("-> verbs: rxe0 port 1 (2.5 Gb/s), GID 1 (RoCE v2, ::ffff:10.0.0.{})", guest)));
  CHECK_THAT(end.errors, !Contains("-> tcp"));
  for (const int guest : {1, 2}) {
    CAPTURE(guest);
    CHECK(packets_of(guest) - packets[guest - 1] >= sent / path_mtu);
    CHECK(bytes_of(guest) - bytes[guest - 1] >= sent);
  }
}

TEST_CASE("programs exchange every byte between two machines", "[verbs_hosts]") {
  const std::string words = GENERATE("-n 4 benchmarks/vb_allreduce -m 4:128k -i 1 -x 1 -c",
                                     "-n 2 benchmarks/vb_put_bw -m 1:64k -i 1 -x 1 -W 8 -c");
  const finished end = on_both(words, "-q");
  INFO(words << "\n" << end.output << end.errors);
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
  CHECK_THAT(end.output, Contains("every byte checked"));
}

TEST_CASE("a clock that is set an hour forth and back disturbs nothing", "[verbs_hosts][faults]") {
  // From the start of the job to its end, on both sides, in turn; at least once each way.
  const finished end =
      run("launcher/rdmarun tests/soak/random_traffic 9 3 & job=$!; steps=0; hour='+1 hour'; "
          "while kill -0 $job 2>/dev/null; do for where in 'ssh g2' 'sh -c'; do $where \"date -s '$hour'\"; "
          "done >/dev/null; "
          "steps=$((steps + 1)); if [ \"$hour\" = '+1 hour' ]; then hour='-1 hour'; else hour='+1 hour'; fi; "
          "done; "
          "wait $job; status=$?; echo $steps steps; [ $steps -ge 3 ] || exit 99; exit $status",
          patience);
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
  CHECK_THAT(end.output, Contains("soak: "));
}

// The last one: there is no second guest afterwards.
TEST_CASE("a machine that dies in mid-transfer ends the job in time, named, and nothing is left",
          "[verbs_hosts][faults][last]") {
  // It resets itself as if its power had failed: nothing is said to anybody. The login that asks for that would wait for ever.
  const finished end = run(
      "launcher/rdmarun benchmarks/vb_latency -m 1m:1m -i 1000000 & job=$!; sleep 6; kill -0 $job || exit "
      "99; "
      "told=$(mktemp -u); mkfifo $told; ssh g2 'echo now; sleep 0.2; echo b >/proc/sysrq-trigger' >$told & "
      "read now <$told; begin=$(date +%s%N); wait $job; status=$?; "
      "echo took $((($(date +%s%N) - begin) / 1000000)) ms; kill $!; rm $told; exit $status",
      patience);
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK((end.status == 1 ||
         end.status == 125));  // of the rank here, which is told that the other is gone, or of a host that is
  CHECK_THAT(end.errors, Contains("host g2: not reached any more"));
  const std::size_t at = end.output.find("took ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stol(end.output.substr(at + 5)) < 12'500);  // the processor is slow
  CHECK(left_here(std::chrono::seconds(1)).empty());
}
