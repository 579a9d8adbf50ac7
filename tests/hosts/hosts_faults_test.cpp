// What goes wrong between hosts: each time a sentence that names the host, the right status, in time, and nothing left.
#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <csignal>

using namespace verbena::tests;
using Catch::Contains;

namespace {

/// Process on a host by its command line, as `pgrep -f` finds it.
void kill_on(int host, const std::string& what) {
  const outcome end = shell(fmt::format("{} {} pkill -KILL -f -- '{}'", in_host(), host, what));
  REQUIRE(end.status == 0);
}

void nothing_left(double patience_s) {
  for (const int host : {1, 2, 3}) {
    CAPTURE(host);
    CHECK(left_on(host, patience_s).empty());
  }
}

}  // namespace

TEST_CASE("a rank that fails on another host ends the job, is named, and gives the status", "[hosts][faults]") {
  const outcome end = shell(on_h1("$R -H h1:2,h2:2,h3 sh -c '[ $VERBENA_RANK = 3 ] && exit 7; exec sleep 60'"));
  CHECK(end.status == 7);
  CHECK_THAT(end.errors, Contains("rank 3 on h2: exited with status 7"));
  CHECK(end.seconds < 5);
  nothing_left(1);
}

TEST_CASE("programs and directories that are not there are named with their host", "[hosts][faults]") {
  const outcome end = shell(on_h1("$R -H h2 /no/such/program"));
  CHECK(end.status == 127);
  CHECK_THAT(end.errors, Contains("rank 0 on h2: cannot run '/no/such/program': No such file"));
  const outcome folder = shell(on_h1("$R --wdir /no/such/folder -H h2 true"));
  CHECK(folder.status == 126);
  CHECK_THAT(folder.errors, Contains("cannot enter the directory '/no/such/folder'"));
}

TEST_CASE("hosts that cannot be reached are told in a sentence", "[hosts][faults]") {
  const outcome unknown = shell(on_h1("$R -H h1,nowhere hostname"));
  CHECK(unknown.status == 125);
  CHECK_THAT(unknown.errors, Contains("host nowhere: cannot start rdmarun's agent there: ssh: Could not resolve hostname"));
  CHECK(unknown.output.empty());
  CHECK(unknown.seconds < 5);
  const outcome refused = shell(on_h1("$R --ssh 'ssh -p 9' -H h2 hostname"));
  CHECK(refused.status == 125);
  CHECK_THAT(refused.errors, Contains("host h2: ") && Contains("Connection refused"));
  const outcome elsewhere = shell(on_h1("$R --prefix /no/such/prefix -H h2 hostname"));
  CHECK(elsewhere.status == 125);
  CHECK_THAT(elsewhere.errors, Contains("host h2: ") && Contains("/no/such/prefix/bin/rdmarun"));
  nothing_left(1);
}

TEST_CASE("an agent that cannot connect back says so", "[hosts][faults]") {
  REQUIRE(shell(in_host() + " 2 ip route add blackhole 10.78.91.1").status == 0);
  const outcome end = shell(on_h1("$R --agent-command 'sh -c \"shift; exec " + in_host() + " 2 \\$@\" x' -H h2 hostname"), {}, 40);
  shell(in_host() + " 2 ip route del blackhole 10.78.91.1");
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: "));
  CHECK(end.seconds < 15);
}

TEST_CASE("an agent that is killed ends the job with its host named", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2 sh -c 'echo up; sleep 60'"));
  REQUIRE(job.says("up\nup"));
  kill_on(2, "rdmarun --agent");
  const outcome end = job.wait(10);
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: the connection to rdmarun's agent there is gone"));
  nothing_left(1);
}

TEST_CASE("rdmarun that is killed leaves nothing on any host", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2,h3 sh -c '(setsid sleep 61 &); echo up; sleep 60'"));
  REQUIRE(job.says("up\nup\nup"));
  kill_on(1, "rdmarun -H");
  nothing_left(2);
}

TEST_CASE("signals and time limits reach the ranks of all hosts", "[hosts][faults]") {
  const outcome late = shell(on_h1("$R --timeout 1 --grace 0.5 -H h1,h2 sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'"));
  CHECK(late.status == 124);
  CHECK_THAT(late.errors, Contains("rank 1 on h2: still running at the time limit"));
  nothing_left(1);
  shell_command job(on_h1("$R -H h1,h2 sh -c 'trap \"echo caught; exit 0\" USR1; echo up; while :; do sleep 0.05; done'"));
  REQUIRE(job.says("up\nup"));
  shell(in_host() + " 1 pkill -USR1 -f 'rdmarun -H'");
  const outcome end = job.wait(10);
  CHECK(end.status == 0);
  CHECK(end.output == "up\nup\ncaught\ncaught\n");
}

TEST_CASE("strangers at the door delay nothing and get nowhere", "[hosts][faults]") {
  // Whoever connects while agents are waited for hears a challenge, and is let go of when what he says is no proof.
  shell_command job(on_h1("$R --agent-command 'sh -c \"sleep 2; shift; exec " + in_host() + " 2 \\$@\" x' -H h2 hostname"));
  sleep_ms(500);
  const outcome place = shell(in_host() + " 1 ss -Hltn | grep -v :22 | awk '{print $4}' | head -1");
  const std::size_t colon = place.output.rfind(':');
  REQUIRE(colon != std::string::npos);
  const std::string port = place.output.substr(colon + 1, place.output.find('\n') - colon - 1);
  const outcome stranger =
      shell(fmt::format("{} 3 timeout 3 bash -c 'exec 3<>/dev/tcp/10.78.91.1/{}; head -c 100 /dev/zero >&3; cat <&3 | wc -c'",
                        in_host(), port));
  CHECK_THAT(stranger.output, Contains("40"));  // the challenge, and nothing after it
  const outcome end = job.wait(15);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(end.output == "h2\n");
}
