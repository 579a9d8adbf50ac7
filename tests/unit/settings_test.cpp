#include "base/settings.hpp"

#include <catch2/catch.hpp>
#include <verbena/error.hpp>

#include <cstring>
#include <map>

using namespace verbena;

namespace {
base::settings read(const std::map<std::string, std::string>& environment) {
  return base::read_settings([&](const char* name) -> const char* {
    auto at = environment.find(name);
    return at == environment.end() ? nullptr : at->second.c_str();
  });
}
}  // namespace

TEST_CASE("an empty environment gives the defaults", "[settings]") {
  const base::settings s = read({});
  CHECK(s.allreduce == "auto");
  CHECK(s.spin_us == -1);
  CHECK(s.unexpected_budget == 4u << 20);
}

TEST_CASE("sizes take k, m and g as powers of 1024", "[settings]") {
  CHECK(read({{"VERBENA_EAGER_LIMIT", "64k"}}).eager_limit == 65536);
  CHECK(read({{"VERBENA_UNEXPECTED_BUDGET", "2G"}}).unexpected_budget == 2ULL << 30);
  std::uint64_t bytes = 7;
  CHECK_FALSE(base::parse_bytes("", bytes));
  CHECK_FALSE(base::parse_bytes("-1", bytes));
  CHECK_FALSE(base::parse_bytes("17179869184g", bytes));
  CHECK(bytes == 7);
}

TEST_CASE("a wrong value is refused with variable, value and what would be right", "[settings]") {
  CHECK_THROWS_WITH(read({{"VERBENA_ALLREDUCE", "rign"}}),
                    "VERBENA_ALLREDUCE='rign' is not one of auto|recursive_doubling|ring|node");
  CHECK_THROWS_WITH(read({{"VERBENA_FABRIC", "self,shmm"}}),
                    "VERBENA_FABRIC='self,shmm' is not a list of self, shm, tcp, verbs");
  CHECK_THROWS_WITH(read({{"VERBENA_SPIN_US", "fast"}}),
                    "VERBENA_SPIN_US='fast' is not a whole number (microseconds), at most 60000000");
  CHECK_THROWS_WITH(read({{"VERBENA_EAGER_LIMIT", "17m"}}),
                    "VERBENA_EAGER_LIMIT='17m' is not a size such as 4096, 64k or 1m, at most 16777216");
  CHECK_THROWS_WITH(read({{"VERBENA_JOIN_TIMEOUT", "18446744073709551615"}}),
                    "VERBENA_JOIN_TIMEOUT='18446744073709551615' is not a whole number (seconds), at most 31536000");
  CHECK_THROWS_WITH(read({{"VERBENA_SINGLETON", "maybe"}}), "VERBENA_SINGLETON='maybe' is not yes or no");
}

TEST_CASE("every row shows what it parsed", "[settings]") {
  for (const base::setting_row& row : base::setting_rows()) {
    CHECK(row.variable.substr(0, 8) == "VERBENA_");
    CHECK_FALSE(row.text.empty());
    base::settings s;
    CHECK(row.parse(s, row.show(s)).empty());
  }
}

TEST_CASE("a value that is refused leaves its setting as it was", "[settings]") {
  int refused = 0;
  for (const base::setting_row& row : base::setting_rows()) {
    for (const char* wrong : {"9", "no such word", "-", "self,shmm"}) {
      base::settings s;
      const std::string before = row.show(s);
      if (row.parse(s, wrong).empty()) continue;
      ++refused;
      CAPTURE(row.variable, wrong);
      CHECK(row.show(s) == before);
    }
  }
  CHECK(refused > 30);
}
