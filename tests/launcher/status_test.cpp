// The exit status of rdmarun, and the one line that explains it.
#include "shell.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <sstream>

using namespace verbena::tests;

namespace {

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// The rows of the table that `rdmarun --help status` prints.
std::vector<std::string> documented_statuses() {
  std::vector<std::string> rows;
  std::istringstream text{shell("$R --help status").output};
  for (std::string line; std::getline(text, line);)
    if (line.size() > 3 && line.compare(0, 2, "  ") == 0 && line[2] != ' ')
      rows.push_back(line.substr(2, line.find(' ', 2) - 2));
  return rows;
}

struct expectation {
  const char* row;  ///< of that table
  const char* command;
  int status;
  const char* text;  ///< part of the one line; empty: nothing is said
};

}  // namespace

TEST_CASE("the status is the first failure's, and one line names rank, host, what and when") {
  const std::vector<expectation> table = {
      {"0", "$R -n 2 true", 0, ""},
      {"1-255", "$R -n 1 sh -c 'exit 3'", 3, "exited with status 3 after 0."},
      {"1-255", "$R -n 2 sh -c 'if [ $VERBENA_RANK = 1 ]; then exit 7; fi; sleep 20'", 7, "rank 1 on "},
      {"128+S", "$R -n 1 sh -c 'kill -SEGV $$'", 139, "killed by signal 11 (Segmentation fault) after 0."},
      {"128+S", "$R -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then kill -9 $$; fi; sleep 20'", 137, "rank 0 on "},
      {"127", "$R -n 2 no-such-program", 127, "cannot run 'no-such-program': No such file"},
      {"126", "$R -n 2 /etc/passwd", 126, "cannot run '/etc/passwd': Permission denied"},
      {"126", "$R -n 2 /tmp", 126, "cannot run '/tmp': Permission denied"},
      {"126", "mkdir $T/x; echo > $T/x/tool; PATH=$T/x:$PATH $R -n 2 tool; s=$?; rm -r $T/x; exit $s", 126,
       "cannot run 'tool': Permission denied"},
      {"126", "$R --wdir /no/such/folder -n 2 true", 126, "cannot enter the directory '/no/such/folder'"},
      {"2", "$R --no-such-option true", 2, "unknown option '--no-such-option'"},
      {"2", "$R -n 0 true", 2, "from 1 on"},
      {"2", "$R", 2, "no program given"},
      {"2", "VERBENA_BARRIER=sideways $R -n 2 true", 2, "VERBENA_BARRIER='sideways'"},
      {"0", "$R -n 2 $C exchange", 0, ""},
      {"1-255", "$R -n 2 $C abort 5", 5, "rank 1 on "},
      {"1-255", "$R -n 2 $C abort 5", 5, ": the input is empty"},
      {"1-255", "$R -n 2 $C abort 0", 1, "aborted the job with status 0"},
      {"1", "$R -n 2 $C noleave", 1, "rank 0 on "},
      {"1", "$R -n 2 $C noleave", 1, "without leaving the job"},
      {"1", "$R -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then sleep 0.3; exit 0; fi; exec $C sleep 20'", 1,
       "without joining the job"},
      {"1", "$R -n 2 sh -c 'if [ $VERBENA_RANK = 0 ]; then exit 0; fi; sleep 0.3; exec $C sleep 20'", 1,
       "rank 0 on "},
      {"1-255", "$R -n 2 $C nonsense", 64, "exited with status 64"},
      {"125", "(ulimit -n 32; $R -n 8 true)", 125, "8 ranks need about 56 open files and the limit is 32"},
      {"124", "$R --timeout 0.3 -n 1 sleep 20", 124, "still running at the time limit"},
      {"128+S", "$R -n 1 sleep 20 & sleep 0.5; kill $!; wait $!", 143, ""},
      {"125", "$R -n 1 echo hello > /dev/full", 125,
       "cannot write to standard output: No space left on device"},
  };
  std::set<std::string> proven;
  const std::vector<std::string> documented = documented_statuses();
  for (const expectation& row : table) {
    CHECK(std::count(documented.begin(), documented.end(), row.row) == 1);
    proven.insert(row.row);
    INFO(row.command);
    shell_command command{row.command};
    const outcome got = command.wait(10);
    CHECK(got.status == row.status);
    CHECK(lines(got.errors) == (row.text[0] == '\0' ? 0U : 1U));
    INFO(got.errors);
    CHECK(got.errors.find(row.text) != std::string::npos);
    CHECK(got.seconds < 5);
    CHECK(command.left_after(1).empty());
    CHECK(command.files_left().empty());
  }
  CHECK(proven == std::set<std::string>(documented.begin(), documented.end()));
}

TEST_CASE("of ranks found dead in the same instant the one that was killed gives the status") {
  // The keeper is stopped until all are dead. In which order it finds them depends on which of its threads started them:
  // seldom one of these first, hardly both.
  for (const char* victim : {"3", "4"}) {
    INFO(victim);
    const outcome got = shell(
        "{ until test -s $T/keeper; do sleep 0.02; done; sleep 1; kill -CONT $(cat $T/keeper); } & $R -n 5 "
        "sh -c '"
        "echo > $T/here.$VERBENA_RANK; until [ $(ls $T | grep -c here) = 5 ]; do sleep 0.02; done; "
        "if [ $VERBENA_RANK = $V ]; then kill -STOP $PPID; echo $PPID > $T/keeper; kill -9 $$; fi; "
        "until test -s $T/keeper; do sleep 0.02; done; exit 5'",
        {{"V", victim}});
    CHECK(got.status == 137);
    CHECK(got.errors.find("rdmarun: rank " + std::string{victim} + " on ") != std::string::npos);
  }
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1  // which forbids core files
#endif
#endif
#ifndef ADDRESS_SANITIZER
TEST_CASE("a core file is kept and named") {
  if (shell("ulimit -c unlimited && $R -n 1 sh -c 'ulimit -c'").output != "unlimited\n") {
    WARN("skipped: core files are not to be had here");
    return;
  }
  const outcome got = shell("cd $T; ulimit -c unlimited; $R -n 1 sh -c 'kill -ABRT $$'; ls");
  CHECK(got.errors.find("killed by signal 6 (Aborted)") != std::string::npos);
  CHECK(got.errors.find(", core ") != std::string::npos);
  const std::size_t named = got.errors.find("core dumped to '");
  if (named == std::string::npos) return;  // this machine hands its cores to a program
  const std::string path = got.errors.substr(named + 16, got.errors.find('\'', named + 16) - named - 16);
  CHECK(got.output.find(path.substr(path.rfind('/') + 1)) != std::string::npos);
}
#endif

TEST_CASE("-q says nothing, the status remains") {
  const outcome got = shell("$R -q -n 5 sh -c 'exit 9'");
  CHECK(got.status == 9);
  CHECK(got.errors.empty());
}

TEST_CASE("more ranks than cores run, with one line") {
  const outcome got = shell("taskset -c 0 $R -n 5 true");
  CHECK(got.status == 0);
  CHECK(got.errors == "rdmarun: 5 ranks share 1 core\n");
}

TEST_CASE("without -n there are as many ranks as the mask has cores") {
  CHECK(shell("taskset -c 0 $R sh -c 'echo $VERBENA_SIZE'").output == "1\n");
}

TEST_CASE("the time limit ends the job with 124 and names who was still running") {
  shell_command command{
      "$R --timeout 0.5 --grace 0.3 -n 2 sh -c 'trap \"\" TERM; while :; do sleep 1; done'"};
  const outcome got = command.wait(10);
  CHECK(got.status == 124);
  CHECK(got.seconds < 4);
  CHECK(lines(got.errors) == 2);
  CHECK(got.errors.find("rank 0 on ") != std::string::npos);
  CHECK(got.errors.find("still running at the time limit of 0.5 s") != std::string::npos);
  CHECK(command.left_after(1).empty());
  CHECK(shell("$R --timeout 5 -n 2 true").status == 0);
}

TEST_CASE("survivors see on the job page who died, before they are ended") {
  shell_command command{"$R -n 3 $C death"};
  const outcome got = command.wait(10);
  CHECK(got.status == 137);
  CHECK(got.output.find("rank 1 saw rank 0 fail by signal 9") != std::string::npos);
  CHECK(got.output.find("rank 2 saw rank 0 fail by signal 9") != std::string::npos);
  CHECK(got.seconds < 3);
  CHECK(command.left_after(1).empty());
}

TEST_CASE("the manual page is one that groff takes") {
  if (shell("command -v groff").status != 0) {
    WARN("skipped: there is no groff");
    return;
  }
  const outcome page = shell("$R --help man | groff -man -Tascii -ww -P-cbu");
  CHECK(page.errors.empty());
  CHECK(page.output.find("--report-bindings") != std::string::npos);
  CHECK(page.output.find("EXIT STATUS") != std::string::npos);
}

TEST_CASE("help, version and settings are printed to standard output") {
  CHECK(shell("$R --help").output.find("--abort-grace SECONDS") != std::string::npos);
  CHECK(shell("$R --help status").output.find("124") != std::string::npos);
  CHECK(shell("$R --version").output.find("rdmarun (Verbena) ") == 0);
  CHECK(shell("$R --settings").output.find("VERBENA_UNEXPECTED_BUDGET") != std::string::npos);
  CHECK(shell("$R --help > /dev/full").status == 125);
}
