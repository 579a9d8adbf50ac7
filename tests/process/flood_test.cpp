// A sender that is far ahead of its receiver costs bounded memory, loses nothing and hinders nobody.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>

using namespace verbena::tests;

namespace {

/// The number that follows `name` in a line that begins with `who`; -1 if it is not there.
double figure(const std::string& text, const std::string& who, const std::string& name) {
  const std::size_t line = text.find(who + ": ");
  const std::size_t at = line == std::string::npos ? line : text.find(name + " ", line);
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + name.size() + 1);
}

constexpr double mib = 1024;  // in KiB

}  // namespace

TEST_CASE("a million blocking sends to a receiver that sleeps cost little and hinder nobody", "[flood]") {
  const finished end =
      run("launcher/rdmarun -q -n 4 tests/process/flood blocking", std::chrono::seconds(100));
  INFO(end.output << end.errors);
  REQUIRE(end.status == 0);
  const double first = figure(end.output, "sender", "first_s"), all = figure(end.output, "sender", "all_s");
  CHECK(first >= 0);
  CHECK(first < 2.5);  // the receiver wakes after 3
  CHECK(all >= 2.9);   // not all fit: the sender did wait
  const double sender = figure(end.output, "sender", "grown_kib");
  const double receiver = figure(end.output, "receiver", "grown_kib");
  CHECK(sender >= 0);
  CHECK(receiver >= 0);
  CHECK(sender + receiver < 16 * mib);
  CHECK(figure(end.output, "bystander", "rounds") > 1000);
  CHECK(figure(end.output, "bystander", "longest_ms") < 500);
}

TEST_CASE("a million started sends do not keep a later message from its receive", "[flood]") {
  const finished end = run("launcher/rdmarun -q -n 2 tests/process/flood started", std::chrono::seconds(100));
  INFO(end.output << end.errors);
  REQUIRE(end.status == 0);
  const double receiver = figure(end.output, "receiver", "grown_kib");
  CHECK(receiver > 0);
  CHECK(receiver < 64 * mib);
}
