// Messages between the ranks of several hosts, over TCP because nothing nearer leads there.
#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <string>

using namespace verbena::tests;
using Catch::Contains;

namespace {

outcome benchmark(const std::string& hosts, const std::string& words, double patience_s = 60) {
  return shell(on_h1(fmt::format("$R -H {} {}/{}", hosts, BENCHMARKS_PATH, words)), {}, patience_s);
}

void must_validate(const std::string& hosts, const std::string& words, const std::string& largest) {
  const outcome end = benchmark(hosts, words);
  INFO(words << "\n" << end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte checked") && Contains("\n" + largest + " "));
}

std::uint64_t received_by(int host) {
  const outcome seen =
      shell(fmt::format("{} {} sed -n 's/^ *eth0: *\\([0-9]*\\) .*/\\1/p' /proc/net/dev", in_host(), host));
  return std::stoull(seen.output);
}

}  // namespace

TEST_CASE("point to point and collectives validate over two hosts and three", "[hosts][tcp]") {
  const std::uint64_t before = received_by(2);
  must_validate("h1,h2", "vb_latency -m 0:1m -i 20 -x 2 -c", "1048576");
  CHECK(received_by(2) - before > 20 * 1048576);
  must_validate("h1,h2", "vb_bw -m 1:256k -i 3 -x 1 -W 16 -c", "262144");
  must_validate("h1:2,h2:2,h3:2", "vb_allreduce -m 4:256k -i 2 -x 1 -c", "262144");
  must_validate("h1:2,h3:1", "vb_alltoall -m 1:64k -i 2 -x 1 -c", "65536");
}

TEST_CASE("--explain says TCP between hosts, and shared memory within one", "[hosts][tcp]") {
  const outcome end =
      shell(on_h1(fmt::format("$R --explain -H h1:2,h2 {}/vb_barrier -i 1", BENCHMARKS_PATH)));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.errors, Contains("-> tcp: it is on another host; 10.78.91.1:") && Contains("-> shm:"));
}

TEST_CASE("--interface and --port-range say where rdmarun and the ranks may be reached", "[hosts][tcp]") {
  const auto run = [](const std::string& words) {
    return shell(on_h1(fmt::format("$R {} -H h1,h2 {}/vb_barrier -i 1", words, BENCHMARKS_PATH)), {}, 40);
  };
  const outcome end = run("--explain --interface 10.78.91.0/24 --port-range 21000:21003");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.errors, Contains("10.78.91.1:2100") || Contains("10.78.91.2:2100"));
  CHECK(run("--interface eth0").status == 0);
  const outcome nowhere = run("--interface nosuch0");
  CHECK(nowhere.status == 125);
  CHECK_THAT(nowhere.errors, Contains("this host has no address on 'nosuch0' (--interface)"));
  const outcome full = run("--port-range 22");  // sshd's
  CHECK(full.status == 125);
  CHECK_THAT(full.errors, Contains("no port of 22 (--port-range) is free on this host"));
}

TEST_CASE("with --interface a rank listens on the loopback and on what is named, and nowhere else",
          "[hosts][tcp]") {
  for (const char* named : {"10.78.91.0/24", "eth0"}) {
    INFO(named);
    shell_command job(
        on_h1(fmt::format("$R --interface {} -H h1,h2 {}/vb_barrier -i 100000000", named, BENCHMARKS_PATH)));
    std::string places;
    for (int i = 0; i < 200 && places.find("10.78.91.2:") == std::string::npos; ++i) {
      sleep_ms(50);
      places = shell(in_host() + " 2 ss -Hltn | awk '{print $4}' | grep -v ':22$'").output;
    }
    CHECK_THAT(places, Contains("10.78.91.2:"));
    for (const char* everywhere : {"0.0.0.0:", "*:", "[::]:"}) CHECK_THAT(places, !Contains(everywhere));
    CHECK((places.find("fe80:") != std::string::npos) ==
          (*named == 'e'));  // of the network none, of the interface its own
  }
}

TEST_CASE("a rank killed in mid-transfer between hosts ends the job within seconds, named",
          "[hosts][tcp][faults]") {
  const outcome end = shell(on_h1(
      fmt::format("$R -H h1,h2,h3 sh -c 'if [ $VERBENA_RANK = 1 ]; then (sleep 1; kill -9 $$) & fi; exec "
                  "{}/vb_allreduce -m 64k:64k -i 100000000'",
                  BENCHMARKS_PATH)));
  INFO(end.errors);
  CHECK(end.status == 137);
  CHECK_THAT(end.errors, Contains("rank 1 on h2"));
  CHECK(end.seconds < 6);
  for (const int host : {1, 2, 3}) CHECK(left_on(host, 1).empty());
}

TEST_CASE("a host's cable pulled for three seconds costs a job nothing but the time",
          "[hosts][tcp][faults]") {
  const outcome end = shell("(sleep 2; " + in_host() + " 2 ip link set eth0 down; sleep 3; " + in_host() +
                                " 2 ip link set eth0 up) & " + in_host() +
                                " 1 $R -H h1:2,h2:2 " SOAK_PATH " 9 3; s=$?; wait; exit $s",
                            {}, 60);
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
}

TEST_CASE("addresses that both hosts have, and networks that lead nowhere, hold nothing up", "[hosts][tcp]") {
  // As containers' bridges are on each host, and a second network whose gateway does not answer.
  for (const int host : {1, 2})
    REQUIRE(shell(fmt::format("{0} {1} sh -c 'ip link add docker0 type bridge && ip addr add 172.17.0.1/16 "
                              "dev docker0 && ip link set "
                              "docker0 up && ip link add apart type bridge && ip addr add 10.80.{1}.1/24 dev "
                              "apart && ip link set apart "
                              "up && ip route add 10.80.{2}.0/24 via 10.78.91.200'",
                              in_host(), host, 3 - host))
                .status == 0);
  const outcome end = shell(
      on_h1(fmt::format("$R --explain -H h1:2,h2:2 {}/vb_allreduce -m 8:16k -i 3 -x 1 -c", BENCHMARKS_PATH)),
      {}, 40);
  for (const int host : {1, 2})
    shell(fmt::format("{} {} sh -c 'ip link del docker0; ip link del apart; ip route flush 10.80.{}.0/24'",
                      in_host(), host, 3 - host));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("4 ranks, every byte checked"));
  CHECK_THAT(end.errors, Contains("-> tcp: it is on another host; 10.78.91.") && !Contains("172.17.0.1"));
  CHECK(end.seconds < 8);
}

TEST_CASE("hosts that have IPv6 only start, meet and talk", "[hosts][tcp]") {
  const auto on_both = [](const std::string& words) {
    for (const int host : {1, 2}) {
      std::string command = words;
      command.replace(command.find('N'), 1, std::to_string(host));
      shell(fmt::format("{} {} {}", in_host(), host, command));
    }
  };
  on_both("ip -6 addr add fd00:91::N/64 dev eth0 nodad");
  on_both("ip addr del 10.78.91.N/24 dev eth0");
  const outcome end = shell(
      on_h1(fmt::format("$R -H 'h1,[fd00:91::2]:2' {}/vb_allreduce -m 8:16k -i 3 -x 1 -c", BENCHMARKS_PATH)),
      {}, 40);
  on_both("ip addr add 10.78.91.N/24 dev eth0");
  on_both("ip -6 addr del fd00:91::N/64 dev eth0");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("3 ranks, every byte checked"));
}
