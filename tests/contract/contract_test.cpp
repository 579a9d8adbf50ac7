// One typed suite holds every fabric to the contract in transport/fabric.hpp.
#include "all_sets.hpp"
#include "suite.hpp"

#include <catch2/catch.hpp>

using namespace verbena::contract;

TEMPLATE_LIST_TEST_CASE("a fabric keeps the contract", "[contract]", all_sets) {
  for (const check& c : all_checks<TestType>()) {
    INFO(TestType::name << ": " << c.name);
    const report found = c.run();
    INFO(found.text());
    CHECK(found.clean());
  }
}

// But for put_with_flag and atomics, which a break may leave without a known outcome.
TEST_CASE("a fabric whose links break keeps what it can of the contract", "[contract]") {
  for (const check& c : all_checks<breaking_set>()) {
    if (c.name == "a flag follows its put" || c.name == "atomics are atomic") continue;
    INFO(c.name);
    const report found = c.run();
    INFO(found.text());
    CHECK(found.clean());
  }
}
