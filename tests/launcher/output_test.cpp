// Standard input and output of the ranks.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <ctime>
#include <map>
#include <sstream>

using namespace verbena::tests;

TEST_CASE("whole lines of many ranks in pieces of all sizes, each tagged once, none lost") {
  const std::string program =
      "import os,random,sys\n"
      "r=os.environ['VERBENA_RANK']; random.seed(int(r))\n"
      "b=''.join('%s %06d %s\\n'%(r,i,r*190) for i in range(10000)).encode()\n"
      "p=0\n"
      "while p<len(b):\n"
      "  n=random.randint(1,3000); p+=os.write(1,b[p:p+n])\n"
      "os.write(1,b'last without end')\n";
  for (const char* through : {"", " | cat"}) {
    INFO(through);
    shell_command command{"$R -q --tag -n 4 python3 -c \"$PROGRAM\"" + std::string{through},
                          {{"PROGRAM", program}}};
    const outcome got = command.wait(60);
    CHECK(got.status == 0);
    std::map<char, int> next;
    int last = 0;
    std::istringstream all{got.output};
    for (std::string line; std::getline(all, line);) {
      REQUIRE(line.size() > 4);
      const char rank = line[1];
      if (line.substr(4) == "last without end") {
        ++last;
        continue;
      }
      std::ostringstream expected;
      expected << '[' << rank << "] " << rank << ' ';
      const std::string number = std::to_string(next[rank]++);
      expected << std::string(6 - number.size(), '0') << number << ' ' << std::string(190, rank);
      REQUIRE(line == expected.str());
    }
    CHECK(last == 4);
    for (const char rank : {'0', '1', '2', '3'}) CHECK(next[rank] == 10000);
  }
}

TEST_CASE("bytes of one rank pass unchanged, whatever they are") {
  const outcome got = shell(
      "head -c 5000000 /dev/urandom > $T/in; $R -n 1 cat < $T/in > $T/file; $R -n 1 cat < $T/in | cat > "
      "$T/pipe; "
      "cmp $T/in $T/file && cmp $T/in $T/pipe && echo same");
  CHECK(got.output == "same\n");
}

TEST_CASE("a prompt without newline appears within a tenth of a second") {
  // Each prompt is the time when it is written. The quickest of five counts: the machine may be busy with something else.
  shell_command command{
      "exec $R -n 2 sh -c '[ $VERBENA_RANK = 0 ] || exec sleep 5; for i in 1 2 3 4 5; do printf \"%s? \" "
      "$(date +%s%N); sleep "
      "0.4; done; sleep 3'"};
  long quickest = 10'000'000'000;
  std::size_t at = 0;
  for (int i = 0; i < 5; ++i) {
    std::string seen;
    for (int tries = 0; tries < 2000 && seen.find('?', at) == std::string::npos; ++tries) {
      sleep_ms(2);
      seen = command.output();
    }
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    REQUIRE(seen.find('?', at) != std::string::npos);
    quickest = std::min(quickest, now.tv_sec * 1'000'000'000 + now.tv_nsec - std::stol(seen.substr(at)));
    at = seen.find('?', at) + 2;
  }
  CHECK(quickest < 100 * verbena::base::millisecond);
}

TEST_CASE("output written right before the end is not lost, not by a failing rank either") {
  for (int i = 0; i < 20; ++i) {
    const outcome got =
        shell("$R -q -n 4 sh -c 'echo out; echo err >&2; printf end; exit 1' 2>&1 | tr -d '\\n'");
    std::size_t outs = 0;
    for (std::size_t at = 0; (at = got.output.find("out", at)) != std::string::npos; ++at) ++outs;
    CHECK(outs >= 1);  // the first to fail at least; the others may be ended before they speak
  }
}

TEST_CASE("a reader that goes away ends the writers as in any pipeline") {
  shell_command command{"$R -n 2 yes | head -1; true"};
  const outcome got = command.wait(10);
  CHECK(got.status == 0);  // it ended by itself
  CHECK(got.output == "y\n");
  CHECK(got.errors.empty());
  CHECK(command.left_after(1).empty());
}

TEST_CASE("a reader that stops holds the ranks back, and rdmarun stays small") {
  shell_command command{
      "$R -q -n 2 yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | (sleep 1.5; head -c 100000 | wc -c)"};
  sleep_ms(1200);
  long most_kb = 0;
  for (const pid_t pid : command.alive()) {
    if (command_name(pid) != "rdmarun") continue;
    const outcome memory = shell("grep VmHWM /proc/" + std::to_string(pid) + "/status | tr -dc 0-9");
    most_kb = std::max(most_kb, std::atol(memory.output.c_str()));
  }
  CHECK(most_kb > 0);
  CHECK(most_kb < 60'000);
  const outcome got = command.wait(10);
  CHECK(got.status == 0);
  CHECK(got.output == "100000\n");
  CHECK(command.left_after(1).empty());
}

TEST_CASE("standard error and output stay apart, and meet whole where they are one file") {
  const outcome apart = shell("$R -n 2 sh -c 'echo out; echo err >&2'");
  CHECK(apart.output == "out\nout\n");
  CHECK(apart.errors == "err\nerr\n");
  const outcome together = shell("$R -n 2 sh -c 'echo out; echo err >&2' 2>&1 | sort | uniq -c | tr -s ' '");
  CHECK(together.output == " 2 err\n 2 out\n");
}

TEST_CASE("rank 0 inherits the standard input, the others read nothing") {
  // Rank 0 comes last to read, so that another would have taken it.
  CHECK(shell("echo hello | $R -n 3 -q sh -c '[ $VERBENA_RANK = 0 ] && sleep 0.3; echo $VERBENA_RANK:$(cat)' "
              "| sort")
            .output == "0:hello\n1:\n2:\n");
}

TEST_CASE("nothing is read that rank 0 does not read") {
  CHECK(shell("seq 3 | while read i; do $R -n 2 true; echo $i; done").output == "1\n2\n3\n");
  CHECK(shell("seq 3 | (  $R -n 1 sh -c 'read a; echo got $a'; cat )").output == "got 1\n2\n3\n");
}

TEST_CASE("who writes to the standard input notices when rank 0 has closed it, while the job goes on") {
  for (const char* whom : {"0", "none"}) {
    INFO(whom);
    const outcome got = shell(
        "{ yes; echo noticed >&2; } | $R -q --stdin $WHOM -n 2 sh -c 'exec </dev/null; sleep 1; echo over "
        ">&2'",
        {{"WHOM", whom}});
    CHECK(got.errors == "noticed\nover\nover\n");
  }
}

TEST_CASE("large input arrives once and whole, from a file and from a pipe") {
  const outcome got = shell(
      "head -c 3000000 /dev/urandom > $T/in; sha256sum < $T/in; $R -n 2 sh -c '[ $VERBENA_RANK = 0 ] && "
      "sha256sum || true' < "
      "$T/in; cat $T/in | $R -n 2 sh -c '[ $VERBENA_RANK = 0 ] && sha256sum || true'");
  std::istringstream sums{got.output};
  std::string first, second, third;
  std::getline(sums, first);
  std::getline(sums, second);
  std::getline(sums, third);
  CHECK(first.size() > 60);
  CHECK(first == second);
  CHECK(first == third);
}

TEST_CASE("closed standard descriptors do no harm") {
  CHECK(shell("$R -n 2 echo hello <&-").output == "hello\nhello\n");
  CHECK(shell("$R -n 2 $C exchange >&-").status == 0);
  CHECK(shell("$R -n 2 $C exchange 2>&-").status == 0);
  CHECK(shell("$R -n 2 $C exchange <&- >&- 2>&-").status == 0);
  CHECK(shell("$R -n 2 sh -c 'exit 4' <&- >&- 2>&-").status == 4);
}
