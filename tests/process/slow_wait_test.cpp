// A wait that lasts too long writes one line that says for what, and what the other one waits for.
#include "command.hpp"

#include <catch2/catch.hpp>

using namespace verbena::tests;
using Catch::Matchers::Contains;

namespace {

finished wait_long(const std::string& seconds, const std::string& what) {
  return run("VERBENA_SLOW_WAIT=" + seconds + " launcher/rdmarun -q -n 2 tests/process/wait_long " + what,
             std::chrono::seconds(30));
}

int lines_with(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("two ranks that wait for each other's messages both say so, and name both waits", "[slow_wait]") {
  const finished end = wait_long("1", "receive");
  INFO(end.output << end.errors);
  CHECK(end.status != 0);  // the alarm
  CHECK_THAT(
      end.errors,
      Contains("verbena: rank 0 has waited for 1 s: receive of 4 B from rank 1, tag 10: no such message "
               "has come; rank 1 waits for a message from rank 0, tag 11\n"));
  CHECK_THAT(
      end.errors,
      Contains("verbena: rank 1 has waited for 1 s: receive of 4 B from rank 0, tag 11: no such message "
               "has come; rank 0 waits for a message from rank 1, tag 10\n"));
  CHECK(lines_with(end.errors, "has waited") == 2);  // once each, although it went on for longer
}

TEST_CASE("a send that nobody receives says so", "[slow_wait]") {
  const finished end = wait_long("1", "send");
  INFO(end.output << end.errors);
  CHECK_THAT(
      end.errors,
      Contains(
          std::string(
              "verbena: rank 0 has waited for 1 s: send of 4 B to rank 1, tag 3: sent, and not received") +
          (on_several_hosts()
               ? "; rank 1, on another host, does not answer: it is outside of the library, or stopped\n"
               : "; rank 1 does not wait now\n")));
  CHECK(lines_with(end.errors, "has waited") == 1);
}

TEST_CASE("the line about long waits can be switched off", "[slow_wait]") {
  const finished end = wait_long("0", "receive");
  CHECK(lines_with(end.errors, "has waited") == 0);
}
