// Programs that leave the job with something open, late or in the middle: each ends soon, and right.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <string>

using Catch::Contains;
using verbena::tests::finished;
using verbena::tests::on_several_hosts;
using verbena::tests::run;

namespace {

finished end_by(const std::string& how, int ranks, const std::string& options = "") {
  return run(fmt::format("launcher/rdmarun {} -n {} tests/process/end_awkwardly {}", options, ranks, how),
             std::chrono::seconds(40));
}

}  // namespace

TEST_CASE("messages that nobody receives do not keep a job from ending", "[endings]") {
  const finished end = end_by("unreceived", 2);
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
}

TEST_CASE("a detached send is delivered although its sender leaves at once", "[endings]") {
  const finished end = end_by("detached", 2);
  INFO(end.errors);
  CHECK(end.status == 0);
}

TEST_CASE("a context of many threads ends alike, with whatever is still open", "[endings]") {
  const std::string how = GENERATE("detached", "unreceived", "dropped", "unmatched", "crossed");
  const finished end = end_by(how + " multiple", 2);
  INFO(how << ": " << end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
}

TEST_CASE("ranks may leave long before the last one", "[endings]") {
  const finished end = end_by("late", 4, "-q");
  CHECK(end.status == 0);
  CHECK(end.errors.empty());
}

TEST_CASE("a context may be a static object", "[endings]") {
  const finished end = end_by("at_exit", 3);
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(end.output == "at exit\nat exit\nat exit\n");
}

TEST_CASE("receives given up take nothing from those that follow", "[endings]") {
  const finished end = end_by("dropped", 2);
  INFO(end.errors);
  CHECK(end.status == 0);
}

TEST_CASE("a large send that nobody receives ends when its receiver leaves", "[endings]") {
  const finished end = end_by("unmatched", 2);
  INFO(end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
}

TEST_CASE("ranks that leave with messages for each other do not wait for ever", "[endings]") {
  const finished end = end_by("crossed", 2);
  INFO(end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
}

TEST_CASE("a rank joins once: a second context is refused in a sentence", "[endings]") {
  const finished end = end_by("twice", 2);
  INFO(end.errors << end.output);
  CHECK(end.status == 0);
  const std::string refused = "refused: this process has joined its job already";
  CHECK(end.output.find(refused) != end.output.rfind(refused));  // both ranks
}

TEST_CASE("a forked child that ends takes nothing of its parent's with it", "[endings]") {
  const finished end = end_by("forked", 2);
  INFO(end.errors << end.output);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
}

TEST_CASE("a peer killed in the middle of large messages ends the job within a second", "[endings][faults]") {
  const auto begin = std::chrono::steady_clock::now();
  const finished end = end_by("large_loop", 2, "-q --abort-grace 5");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  INFO(end.output << end.errors);
  CHECK(end.status == 137);
  CHECK_THAT(end.output,
             Contains("told: ") && Contains("to rank 1") && Contains("rank 1 was killed by signal 9"));
  CHECK(took.count() < (on_several_hosts() ? 8 : 3));  // start, a tenth of a second of traffic, and the second that is promised
}
