// Jobs over several hosts: who runs where, what reaches them, what comes back.
#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

using namespace verbena::tests;
using Catch::Contains;

TEST_CASE("ranks run on the hosts that are named, and know their places", "[hosts]") {
  const outcome end = shell(
      on_h1("$R -H h1:2,h2:1,h3:2 sh -c 'echo $(hostname) $VERBENA_RANK/$VERBENA_SIZE $VERBENA_LOCAL_RANK/$VERBENA_LOCAL_SIZE'"));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output) == lines{"h1 0/5 0/2", "h1 1/5 1/2", "h2 2/5 0/1", "h3 3/5 0/2", "h3 4/5 1/2"});
  CHECK(end.errors.empty());
}

TEST_CASE("hosts may all be others, come from a file, take turns, and bear several names", "[hosts]") {
  CHECK(sorted_lines(shell(on_h1("$R -H h2,h3 hostname")).output) == lines{"h2", "h3"});
  CHECK(sorted_lines(shell(on_h1("$R --map node -H h2:2,h3:2 sh -c 'echo $VERBENA_RANK $(hostname)'")).output) ==
        lines{"0 h2", "1 h3", "2 h2", "3 h3"});
  CHECK(sorted_lines(shell(on_h1("$R -H h2,10.78.91.2 -n 2 sh -c 'echo $(hostname) $VERBENA_LOCAL_SIZE'")).output) ==
        lines{"h2 2", "h2 2"});
  const outcome end = shell("printf '# two\\nh1 slots=1\\nh3:2\\n\\n' >$T/hosts; " + in_host() + " 1 $R --hostfile $T/hosts hostname");
  INFO(end.errors);
  CHECK(sorted_lines(end.output) == lines{"h1", "h3", "h3"});
}

TEST_CASE("--map core and numa fill the slots of a host before the next one's, and bind there", "[hosts]") {
  if (std::thread::hardware_concurrency() < 2) {
    WARN("skipped: needs two processors");
    return;
  }
  // Agents that see a machine of two memory domains with a core each.
  const std::string start = "f() { h=$1; shift; exec ssh $h env HWLOC_SYNTHETIC=\\'pack:2 numa:1 core:1 pu:1\\' \"$@\"; }; f";
  for (const auto& [policy, places] :
       {std::pair{"core", lines{"0 h2 0", "1 h2 1", "2 h3 0"}}, std::pair{"numa", lines{"0 h2 0", "1 h2 1", "2 h3 0"}}}) {
    INFO(policy);
    const outcome end = shell(on_h1("$R -q --agent-command \"$START\" --map " + std::string(policy) +
                                    " -H h2:2,h3:1 sh -c 'echo $VERBENA_RANK $(hostname) "
                                    "$(sed -n s/^Cpus_allowed_list:.//p /proc/self/status)'"),
                              {{"START", start}});
    INFO(end.errors);
    CHECK(sorted_lines(end.output) == places);
  }
}

TEST_CASE("ranks of several hosts meet through PMIx and read each other's values", "[hosts]") {
  const outcome end = shell(on_h1("$R -H h1:2,h2:2,h3:1 $C exchange"), {}, 60);
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
}

TEST_CASE("arguments, variables and the directory arrive byte for byte", "[hosts]") {
  const outcome end = shell("cd $T; export STRANGE=\"$(printf 'a \"b\\n\\377c')\"; " + in_host() +
                            " 1 $R -H h2 sh -c 'pwd; printf %s \"$STRANGE\" | od -An -tx1; for a; do printf \"<%s>\" \"$a\"; done' "
                            "sh 'two words' \"it's\" '' '$HOME' \"$(printf 'new\\nline')\"");
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("/tmp/launcher-test-"));
  CHECK_THAT(end.output, Contains(" 61 20 22 62 0a ff 63\n"));
  CHECK_THAT(end.output, Contains("<two words><it's><><$HOME><new\nline>"));
}

TEST_CASE("rank 0 on the user's own host reads the standard input, the others read nothing", "[hosts]") {
  const outcome end = shell("printf 'one\\ntwo\\n' | " + in_host() + " 1 $R -H h1,h2 sh -c 'echo $VERBENA_RANK: $(cat)'");
  INFO(end.errors);
  CHECK(sorted_lines(end.output) == lines{"0: one two", "1:"});
  const outcome elsewhere = shell("echo one | " + in_host() + " 1 $R -H h2,h3 sh -c 'echo $VERBENA_RANK: $(cat)'");
  CHECK(sorted_lines(elsewhere.output) == lines{"0:", "1:"});
}

TEST_CASE("--stdin gives the standard input to a rank of another host, and to it alone", "[hosts]") {
  for (const char* hosts : {"h1,h2", "h2,h3"}) {
    INFO(hosts);
    const outcome end = shell("seq 100000 | " + in_host() + " 1 $R --stdin 1 -H " + hosts + " sh -c 'echo $VERBENA_RANK: $(md5sum)'; seq 100000 | md5sum");
    INFO(end.errors);
    const std::size_t last = end.output.rfind('\n', end.output.size() - 2);
    const std::string right = end.output.substr(last + 1, 32);
    const std::string of_nothing = "d41d8cd98f00b204e9800998ecf8427e";
    CHECK(sorted_lines(end.output.substr(0, last + 1)) == lines{"0: " + of_nothing + " -", "1: " + right + " -"});
  }
  const outcome file = shell("seq 5000 > $T/in; exec " + in_host() + " 1 $R --stdin 0 -H h2 tail -1 < $T/in");
  CHECK(file.output == "5000\n");
  // A reader that stops early, one that never reads, and no input at all.
  CHECK(shell("seq 1000000 | " + in_host() + " 1 $R --stdin 0 -H h2 head -1").output == "1\n");
  CHECK(shell("yes | " + in_host() + " 1 $R --stdin 0 -H h2 true").status == 0);
  CHECK(shell(on_h1("$R --stdin 0 -H h2 wc -c < /dev/null")).output == "0\n");
}

TEST_CASE("the standard input of another host's rank is read 64 KiB ahead at most", "[hosts]") {
  // 64 more fit into the pipe between the writer and rdmarun.
  const outcome end = shell("i=0; while [ $i -lt 400 ]; do head -c 1024 /dev/zero; i=$((i+1)); echo $i > $T/written; done | " +
                            in_host() + " 1 $R --stdin 1 -H h1,h2 sh -c '[ $VERBENA_RANK = 0 ] || { sleep 2; cat $T/written; wc -c; }'");
  INFO(end.output << end.errors);
  const std::size_t line = end.output.find('\n');
  REQUIRE(line != std::string::npos);
  const int written = std::stoi(end.output);
  CHECK((written >= 64 && written <= 129));
  CHECK(end.output.substr(line + 1) == "409600\n");
}

TEST_CASE("output of all hosts comes whole, in order, to the right place, and tagged", "[hosts]") {
  const outcome end = shell(on_h1("$R --tag -H h1:2,h2:2 sh -c 'seq 20000; echo done >&2'"), {}, 60);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.errors) == lines{"[0] done", "[1] done", "[2] done", "[3] done"});
  std::vector<int> next(4, 1);
  bool right = true;
  for (std::size_t at = 0; at < end.output.size() && right;) {
    const std::size_t stop = end.output.find('\n', at);
    const int rank = end.output[at + 1] - '0';
    right = stop != std::string::npos && end.output[at] == '[' && rank >= 0 && rank < 4 &&
            end.output.substr(at + 4, stop - at - 4) == std::to_string(next[static_cast<std::size_t>(rank)]++);
    at = stop + 1;
  }
  CHECK(right);
  CHECK(next == std::vector<int>{20001, 20001, 20001, 20001});
}

TEST_CASE("a reader that has gone, and one that is slow, reach the ranks of other hosts", "[hosts]") {
  const outcome gone = shell(in_host() + " 1 $R -H h2 yes | head -n 3");
  CHECK(gone.output == "y\ny\ny\n");
  CHECK(left_on(2, 2).empty());
  // 4 MiB through a pipe that is not read for half a second: nothing is lost.
  const outcome slow = shell(in_host() + " 1 $R -H h2 head -c 4194304 /dev/zero | (sleep 0.5; wc -c)");
  CHECK(sorted_lines(slow.output) == lines{"4194304"});
}

TEST_CASE("each rank's output goes to files of the user's host", "[hosts]") {
  const outcome end = shell(in_host() + " 1 $R --output $T/out -H h1,h2 sh -c 'hostname; hostname >&2' && cat $T/out/*");
  INFO(end.errors);
  CHECK(end.output == "h1\nh1\nh2\nh2\n");
}

TEST_CASE("another command than ssh may start the agents", "[hosts]") {
  const outcome end = shell(on_h1("$R --agent-command 'echo a banner; echo another >&2; ssh' -H h2,h3 hostname"));
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(sorted_lines(end.output) == lines{"h2", "h3"});
  CHECK(end.errors.empty());
}
