// The contract over a real device; needs one (a guest with Soft-RoCE has it). One test case a check, so that a report names it.
#include "suite.hpp"
#include "verbs_set.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

using namespace verbena::contract;

namespace {

/// What is about bulk_method::together, which this fabric has not.
bool shares_only(std::string_view name) {
  return name.find("offer") != name.npos || name.find("ticket") != name.npos || name.find("sharing") != name.npos;
}

}  // namespace

TEST_CASE("a device is found and said to be usable", "[verbs]") {
  verbs_set set(2);
  const std::string words = set.fabric(0).explain(verbena::transport::peer{1});
  INFO(words);
  CHECK(words.find("port 1") != std::string::npos);
  CHECK(words.find("RoCE v2, ::ffff:10.0.0.1") != std::string::npos);
}

TEST_CASE("verbs keep the contract", "[verbs]") {
  for (const check& c : all_checks<verbs_set>()) {
    DYNAMIC_SECTION(c.name) {
      const report found = c.run();
      INFO(found.text());
      CHECK(found.clean());
      CHECK((found.expectations() != 0 || shares_only(c.name)));
    }
  }
}
