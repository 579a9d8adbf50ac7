// What goes wrong between hosts: each time a sentence that names the host, the right status, in time, and nothing left.
#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <csignal>

using namespace verbena;
using namespace verbena::tests;
using Catch::Contains;

namespace {

/// Kills the oldest rdmarun of a host: on h1 the one that the user started, on others the agent. Its keeper has another name.
void kill_on(int host) {
  const outcome end = shell(fmt::format("{} {} pkill -KILL -o -x rdmarun", in_host(), host));
  REQUIRE(end.status == 0);
}

void nothing_left(double patience_s) {
  for (const int host : {1, 2, 3}) {
    CAPTURE(host);
    CHECK(left_on(host, patience_s).empty());
  }
}

/// The port on which rdmarun on h1 waits for its agents.
std::string door_of_h1() {
  const outcome place = shell(in_host() + " 1 ss -Hltn | grep -v :22 | awk '{print $4}' | head -1");
  const std::size_t colon = place.output.rfind(':');
  return colon == std::string::npos ? "" : place.output.substr(colon + 1, place.output.find('\n') - colon - 1);
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
  // A network of its own, with nothing in it.
  const outcome cut = shell(on_h1("$R --agent-command 'f() { shift; unshare -n \"$@\"; }; f' -H h2 hostname"), {}, 40);
  CHECK(cut.status == 125);
  CHECK_THAT(cut.errors, Contains("host h2: cannot start rdmarun's agent there: ") && Contains("cannot connect back within 10 s") &&
                             Contains("unreachable"));
  // What it sends gets lost, as behind a firewall that drops it.
  REQUIRE(shell(in_host() + " 1 ip addr add 10.78.92.1/32 dev eth0").status == 0);
  const outcome dropped = shell(
      on_h1("$R --agent-command 'f() { shift; unshare -n sh -c \"ip link set lo up; ip route add default dev lo; exec $*\"; }; f' "
            "-H h2 hostname"),
      {}, 40);
  shell(in_host() + " 1 ip addr del 10.78.92.1/32 dev eth0");
  CHECK(dropped.status == 125);
  CHECK_THAT(dropped.errors, Contains("host h2: cannot start rdmarun's agent there: "));
  CHECK(dropped.seconds < 15);
}

TEST_CASE("an agent of another release is refused at once, with both versions and the host", "[hosts][faults]") {
  // What rdmarun says to it first is changed on its way, to what a later release would say.
  const std::string later = "f() { h=$1; shift; sed -u '1s/^verbena-agent [0-9]*/verbena-agent 99/' | ssh $h \"$@\"; }; f";
  const outcome end = shell(on_h1("$R --agent-command \"$LATER\" -H h2 hostname"), {{"LATER", later}});
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: ") && Contains("speaks version ") && Contains("with its agents, not 99") &&
                             Contains("install the same release on both hosts"));
  CHECK(end.output.empty());
  CHECK(end.seconds < 5);
  nothing_left(1);
}

TEST_CASE("an agent may lie at another path", "[hosts]") {
  const outcome end = shell("mkdir -p $T/elsewhere/bin; ln -s $R $T/elsewhere/bin/rdmarun; " + in_host() +
                            " 1 $R --prefix $T/elsewhere -H h2 sh -c 'tr \"\\0\" \" \" < /proc/$(pgrep -o -x rdmarun)/cmdline'");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("/elsewhere/bin/rdmarun --agent"));
}

TEST_CASE("a full disk under --output ends the job with a sentence", "[hosts][faults]") {
  const outcome end = shell(in_host() + " 1 sh -c 'mkdir $T/full; mount -t tmpfs -o size=64k tmpfs $T/full; "
                            "$R --output $T/full -H h1,h2 sh -c \"seq 100000; sleep 60\"; s=$?; umount $T/full; exit $s'");
  INFO(end.errors);
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("rdmarun: cannot write into '") && Contains("/full': No space left on device"));
  CHECK(end.seconds < 10);
  nothing_left(1);
}

TEST_CASE("an agent that is killed ends the job with its host named", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2 sh -c 'echo up; sleep 60'"));
  REQUIRE(job.says("up\nup"));
  kill_on(2);
  const outcome end = job.wait(40);
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: the connection to rdmarun's agent there is gone"));
  nothing_left(1);
}

TEST_CASE("rdmarun that is killed leaves nothing on any host", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2,h3 sh -c '(setsid sleep 61 &); echo up; sleep 60'"));
  REQUIRE(job.says("up\nup\nup"));
  kill_on(1);
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
  const outcome end = job.wait(40);
  CHECK(end.status == 0);
  CHECK(end.output == "up\nup\ncaught\ncaught\n");
}

TEST_CASE("a thousand strangers who say nothing, or a byte now and then, delay no start, and are let go of after five seconds", "[hosts][faults]") {
  const auto start = [](const char* delay) { return on_h1(fmt::format("$R --agent-command 'sleep {}; ssh' -H h2 hostname", delay)); };
  const double alone = shell(start("2")).seconds;
  for (const char* delay : {"2", "8"}) {
    shell_command job(start(delay));
    sleep_ms(500);
    const std::string port = door_of_h1();
    REQUIRE_FALSE(port.empty());
    // Prints how many were closed, and how long the last one was kept, to the nearest second: it was let in a moment before.
    shell_command strangers(fmt::format(
        "{} 3 python3 -c '\n"
        "import socket, threading, time\n"
        "all = [socket.create_connection((\"10.78.91.1\", {}), 5) for i in range(1000)]\n"
        "def drip():\n"  // some say a byte now and then, which is no proof either
        "  for i in range(40):\n"
        "    time.sleep(0.5)\n"
        "    for one in all[::10]:\n"
        "      try: one.send(b\"x\")\n"
        "      except OSError: pass\n"
        "threading.Thread(target=drip, daemon=True).start()\n"
        "begin = time.time()\n"
        "closed = 0\n"
        "for one in all:\n"
        "  one.settimeout(20)\n"
        "  try:\n"
        "    while one.recv(4096): pass\n"
        "  except ConnectionResetError: pass\n"
        "  closed += 1\n"
        "print(closed, round(time.time() - begin))\n'",
        in_host(), port));
    const outcome end = job.wait(20);
    INFO(end.errors);
    CHECK(end.status == 0);
    CHECK(end.output == "h2\n");
    if (*delay == '2') CHECK(end.seconds < alone + 1);
    const outcome kept = strangers.wait(20);
    INFO(kept.errors);
    REQUIRE(kept.output.starts_with("1000 "));
    const int longest = std::stoi(kept.output.substr(5));
    if (*delay == '2')
      CHECK(longest <= 3);
    else
      CHECK((longest >= 5 && longest <= 7));
  }
}

TEST_CASE("--link-timeout is how long a host may be out of reach", "[hosts][faults]") {
  shell_command job(on_h1("$R --link-timeout 4 -H h1,h2 sh -c 'echo up; sleep 60'"));
  REQUIRE(job.says("up\nup"));
  const base::nanoseconds begin = base::steady_now();
  shell(in_host() + " 2 ip link set eth0 down");
  const outcome end = job.wait(20);
  const std::string left = left_on(2, 8 - static_cast<double>(base::steady_now() - begin) / 1e9);
  shell(in_host() + " 2 ip link set eth0 up");
  CHECK(left.empty());
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: not reached any more"));
  CHECK(base::steady_now() - begin < 8 * base::second);
  nothing_left(1);
}

TEST_CASE("orders to a host that is not reached do not prolong the wait for it", "[hosts][faults]") {
  // The job begins to end two seconds after the break, with orders that h2 never gets.
  shell_command job(on_h1("$R --link-timeout 4 -H h1,h2 sh -c 'echo up; if [ $VERBENA_RANK = 0 ]; then sleep 2; exit 7; fi; sleep 60'"));
  REQUIRE(job.says("up\nup"));
  const base::nanoseconds begin = base::steady_now();
  shell(in_host() + " 2 ip link set eth0 down");
  const outcome end = job.wait(20);
  const double took = static_cast<double>(base::steady_now() - begin) / 1e9;
  shell(in_host() + " 2 ip link set eth0 up");
  INFO(end.errors);
  CHECK(end.status == 7);
  CHECK_THAT(end.errors, Contains("rank 0 on h1: exited with status 7") && Contains("rdmarun: host h2: not reached any more: "));
  CHECK(took < 6);
  nothing_left(3);
}

TEST_CASE("strangers at the door delay nothing and get nowhere", "[hosts][faults]") {
  // Whoever connects while agents are waited for hears a challenge, and is let go of when what he says is no proof.
  shell_command job(on_h1("$R --agent-command 'sleep 2; ssh' -H h2 hostname"));
  sleep_ms(500);
  const std::string port = door_of_h1();
  REQUIRE_FALSE(port.empty());
  const outcome stranger =
      shell(fmt::format("{} 3 timeout 3 bash -c 'exec 3<>/dev/tcp/10.78.91.1/{}; head -c 100 /dev/zero >&3; cat <&3 | wc -c'",
                        in_host(), port));
  CHECK_THAT(stranger.output, Contains("40"));  // the challenge, and nothing after it
  const outcome end = job.wait(15);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(end.output == "h2\n");
}

TEST_CASE("a host that the network does not reach any more is lost, with its ranks, on both sides", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2 sh -c 'echo up; sleep 60'"));
  REQUIRE(job.says("up\nup"));
  const base::nanoseconds begin = base::steady_now();
  shell(in_host() + " 2 ip link set eth0 down");
  const outcome end = job.wait(20);
  const std::string left = left_on(2, 13 - static_cast<double>(base::steady_now() - begin) / 1e9);
  shell(in_host() + " 2 ip link set eth0 up");
  CHECK(left.empty());
  CHECK(end.status == 125);
  CHECK_THAT(end.errors, Contains("host h2: not reached any more"));
  const double took = static_cast<double>(base::steady_now() - begin) / 1e9;
  CHECK(took > 9);
  CHECK(took < 13);
  nothing_left(1);
}

TEST_CASE("a login that is turned away because others are under way is tried again", "[hosts][faults]") {
  // One caller that has not logged in may be there at a time.
  shell_command door("exec " + in_host() +
                     " 2 /usr/sbin/sshd -D -e -f /dev/null -o Port=2222 -o HostKey=$VERBENA_HOSTS_BED/key "
                     "-o AuthorizedKeysFile=$VERBENA_HOSTS_BED/authorized -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes "
                     "-o PidFile=none -o MaxStartups=1:100:1 2>&1");
  REQUIRE(door.says("Server listening"));
  const outcome end = shell(on_h1("$R -q --ssh 'ssh -p 2222' -H h2,10.78.91.2 -n 2 hostname"), {}, 30);
  shell(in_host() + " 2 pkill -f Port=2222");
  INFO(end.errors << door.output());
  CHECK(end.status == 0);
  CHECK(end.output == "h2\nh2\n");
  CHECK_THAT(door.output(), Contains("MaxStartups"));
}

TEST_CASE("a launcher that is stopped for a while loses no host, however much was to be read", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2 sh -c 'echo up; [ $(hostname) = h1 ] || { sleep 1; yes abcdefghi | head -n 200000; }'"));
  REQUIRE(job.says("up\nup"));
  shell(in_host() + " 1 pkill -STOP -x rdmarun");
  sleep_ms(13'000);
  shell(in_host() + " 1 pkill -CONT -x rdmarun");
  ::kill(-job.pid(), SIGCONT);  // what runs it there has stopped with it
  const outcome end = job.wait(30);
  CHECK(end.status == 0);
  CHECK(end.output.size() == 6 + 2'000'000);
  CHECK(end.errors.empty());
}

TEST_CASE("a host whose processes are stopped for a while is waited for", "[hosts][faults]") {
  shell_command job(on_h1("$R -H h1,h2 sh -c 'echo up; sleep 3; echo done'"));
  REQUIRE(job.says("up\nup"));
  shell(in_host() + " 2 pkill -STOP -v -x sshd");
  sleep_ms(14'000);
  shell(in_host() + " 2 pkill -CONT -v -x sshd");
  const outcome end = job.wait(30);
  CHECK(end.status == 0);
  CHECK(end.output == "up\nup\ndone\ndone\n");
  CHECK(end.errors.empty());
}
