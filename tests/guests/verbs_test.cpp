// Runs inside a guest with Soft-RoCE: whole programs over real libibverbs and a real kernel.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

using Catch::Contains;
using namespace verbena::tests;

namespace {

constexpr std::chrono::seconds patience{90};  // the processor is emulated

finished over_verbs(int ranks, const std::string& program, const std::string& options = "") {
  return run(fmt::format("launcher/rdmarun -q --fabric verbs {} -n {} {}", options, ranks, program),
             patience);
}

/// A counter of the device: it counts SENDs and packets of all kinds, from its making on.
long counter(const std::string& name) {
  const finished end = run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/" + name);
  REQUIRE(end.status == 0);
  return std::stol(end.output);
}

void bring_the_port_back() {
  run("ip link set eth0 up; for i in $(seq 50); do grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state "
      "&& "
      "cat /sys/class/infiniband/rxe0/ports/1/gids/* | grep -q ffff:0a00:0001 && break; sleep 0.1; done");
}

int occurrences(const std::string& text, const std::string& of) {
  int count = 0;
  for (std::size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("programs exchange every byte over verbs", "[verbs]") {
  const auto [ranks, program] = GENERATE(table<int, std::string>({
      {2, "benchmarks/vb_latency -m 0:1m -i 4 -x 1 -c"},
      {2, "benchmarks/vb_bw -m 2k:128k -i 1 -x 1 -c"},
      {4, "benchmarks/vb_allreduce -m 4:128k -i 2 -x 1 -c"},
      {3, "benchmarks/vb_alltoall -m 64:32k -i 2 -x 1 -c"},
      {2, "benchmarks/vb_put_latency -m 1:64k -i 4 -x 1 -c"},
      {2, "benchmarks/vb_get_bw -m 1k:64k -i 1 -x 1 -c"},
  }));
  CAPTURE(program);
  const finished end = over_verbs(ranks, program);
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
  CHECK_THAT(end.output, Contains("every byte checked"));
}

TEST_CASE("16 MiB are RDMA Writes, 8 bytes one SEND", "[verbs]") {
  constexpr long path_mtu = 1024, large = 16L << 20;
  long sends = counter("rdma_sends"), packets = counter("sent_pkts");
  const finished end = over_verbs(2, "benchmarks/vb_latency -m 16m:16m -i 1 -x 0 -c");
  INFO(end.output << end.errors);
  REQUIRE(end.status == 0);
  sends = counter("rdma_sends") - sends;
  packets = counter("sent_pkts") - packets;
  INFO(sends << " SENDs, " << packets << " packets");
  CHECK(packets >= 2 * large / path_mtu);  // there and back
  CHECK(sends < 60);                       // not a message in pieces of 8 KiB, which would be 4096

  const long before = counter("rdma_sends");
  REQUIRE(over_verbs(2, "benchmarks/vb_latency -m 8:8 -i 1000 -x 0").status == 0);
  const long small = counter("rdma_sends") - before;
  INFO(small << " SENDs for 2000 messages");
  CHECK(small >= 2000);
  CHECK(small < 2040);  // credit travels with the answers
}

TEST_CASE("memory of verbena::memory() stays registered, other memory does not", "[verbs]") {
  const finished own = over_verbs(2, "tests/guests/resend own");
  INFO(own.output << own.errors);
  CHECK(own.status == 0);
  CHECK_THAT(own.output, Contains("the buffer is registered after the first message: yes") &&
                             Contains("the same regions after the second: yes") &&
                             Contains("registered after it is freed: no") &&
                             Contains("found 1, made 1, evicted 0"));
  const finished other = over_verbs(2, "tests/guests/resend other");
  INFO(other.output << other.errors);
  CHECK(other.status == 0);
  CHECK_THAT(other.output, Contains("the buffer is registered after the first message: no") &&
                               Contains("found 0, made 2, evicted 0"));
}

TEST_CASE("with little memory to lock, messages arrive all the same", "[verbs]") {
  // As an ordinary user, for root may lock what it likes; he may not see the build folder. A rank's slots take 1.2 MiB, and
  // leave room for five buffers of 256 KiB: one less than there are.
  const scratch_folder folder;
  const finished end = run(
      fmt::format("cp -L launcher/rdmarun tests/guests/resend libverbena.so.0 {0} && chmod 666 "
                  "/dev/infiniband/uverbs0 && "
                  "cd / && prlimit --memlock=2621440 setpriv --reuid 65534 --regid 65534 --clear-groups env "
                  "HOME=/nonexistent LD_LIBRARY_PATH={0} VERBENA_STATS=1 {0}/rdmarun -q --fabric verbs -n 2 "
                  "{0}/resend scarce",
                  folder.path()),
      patience);
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte right"));
  CHECK_THAT(end.errors, !Contains("registrations_evicted=0"));
}

TEST_CASE("--explain says which device, and why", "[verbs]") {
  const finished end = over_verbs(2, "benchmarks/vb_latency -m 8 -i 1", "--explain");
  INFO(end.errors);
  CHECK(end.status == 0);
  for (const char* part : {"-> verbs", "rxe0 port 1", "GID 1 (RoCE v2, ::ffff:10.0.0.1)",
                           "the only active port", "path MTU 1024 B", "inline to 256 B", "eager to 16384 B",
                           "put by the sender", "reliable connection made at join"})
    CHECK_THAT(end.errors, Contains(part));
  CHECK_THAT(end.errors, Contains("not allowed by VERBENA_FABRIC=verbs"));
}

TEST_CASE("between ranks of a host shared memory stays the choice", "[verbs]") {
  const finished end = run("launcher/rdmarun -q --explain -n 2 benchmarks/vb_latency -m 8 -i 1");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.errors, Contains("-> shm") && !Contains("-> verbs"));
}

TEST_CASE("a device that is not there is named", "[verbs]") {
  const finished end = over_verbs(2, "benchmarks/vb_latency -m 8 -i 1", "--device nosuch0");
  INFO(end.errors);
  CHECK(end.status != 0);
  CHECK_THAT(end.errors, Contains("there is no device or port 'nosuch0'"));
  const finished right = over_verbs(2, "benchmarks/vb_latency -m 8 -i 1", "--explain --device rxe0:1");
  CHECK(right.status == 0);
  CHECK_THAT(right.errors, Contains("asked for by VERBENA_DEVICE=rxe0:1"));
}

TEST_CASE("a port that is down is not used", "[verbs]") {
  REQUIRE(run("ip link set eth0 down").status == 0);
  const finished end = over_verbs(2, "benchmarks/vb_latency -m 8 -i 1");
  REQUIRE(run("ip link set eth0 up && ip addr show eth0").status == 0);
  INFO(end.errors);
  CHECK(end.status != 0);
  CHECK_THAT(end.errors, Contains("rxe0 port 1 is DOWN, not ACTIVE"));
  run("for i in $(seq 50); do grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state && break; sleep 0.1; "
      "done");
}

TEST_CASE("a program goes on when the port comes back", "[verbs][faults]") {
  const finished end = over_verbs(2, "tests/guests/through_a_break back");
  bring_the_port_back();
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte right"));
  const std::size_t at = end.output.find("took ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stol(end.output.substr(at + 5)) >= 1500);
}

TEST_CASE("a program whose port stays down is told what to look at", "[verbs][faults]") {
  const auto start = std::chrono::steady_clock::now();
  const finished end = over_verbs(2, "tests/guests/through_a_break stay", "--link-timeout 3");
  const auto took = std::chrono::steady_clock::now() - start;
  bring_the_port_back();
  INFO(end.output << end.errors);
  CHECK(end.status != 0);
  CHECK_FALSE(end.timed_out);
  CHECK(took < std::chrono::seconds(15));
  CHECK_THAT(end.errors, Contains("rxe0 port 1") && Contains("The port here is DOWN"));
  CHECK_THAT(end.errors, Contains("No new connection within 3 s") || Contains("no link for 3 s"));
}

TEST_CASE("survivors of a death are told who is gone", "[verbs][faults]") {
  const int count = GENERATE(1, 4000);
  const finished end =
      run(fmt::format(
              "launcher/rdmarun -q --fabric verbs --abort-grace 20 -n 3 tests/process/die_in_collective {}",
              count),
          patience);
  INFO(end.output << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 137);
  CHECK(occurrences(end.output, "told within a second: ") >= 2);
  CHECK(occurrences(end.output, "NOT") == 0);
  CHECK(occurrences(end.output, "of this communicator of 3 is gone") == 2);
  CHECK(occurrences(end.output, "rank 1 of this") >= 1);
}

TEST_CASE("a rank that waits long sleeps", "[verbs]") {
  // Both wait four seconds for what never comes; the alarm ends them. Meanwhile they are looked at.
  const finished end =
      run("launcher/rdmarun -q --fabric verbs -n 2 tests/process/wait_long receive >&2 & "
          "until [ $(ps -C wait_long -o pid= | wc -l) = 2 ]; do sleep 0.1; done; sleep 2.5; "
          "for i in $(seq 10); do ps -C wait_long -o state=; done; wait",
          patience);
  INFO(end.output << end.errors);
  const int asleep = occurrences(end.output, "S"), awake = occurrences(end.output, "R");
  CHECK(asleep >= 6);
  CHECK(awake * 4 <= asleep);
}
