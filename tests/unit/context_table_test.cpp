// Which packets are late, which are early, and which context ids are free.
#include "runtime/engine/context_table.hpp"

#include <catch2/catch.hpp>

#include <set>

using verbena::runtime::collective_bit;
using verbena::runtime::context_table;
using standing = context_table::standing;

TEST_CASE("a context is live from install to remove, in its generation only", "[contexts]") {
  context_table table;
  CHECK(table.of(context_table::context_of(5, 1)) == standing::stale);
  REQUIRE(table.hold(5));
  CHECK_FALSE(table.hold(5));
  CHECK(table.of(context_table::context_of(5, 1)) == standing::held);
  CHECK(table.of(context_table::context_of(5, 77)) == standing::held);
  const std::uint32_t first = table.install(5, 7);
  CHECK(first == context_table::context_of(5, 7));
  CHECK_FALSE(table.hold(5));
  CHECK(table.of(first) == standing::live);
  CHECK(table.of(first | collective_bit) == standing::live);
  CHECK(table.of(context_table::context_of(5, 6)) == standing::stale);
  CHECK(table.of(context_table::context_of(6, 7)) == standing::stale);
  table.remove(5);
  CHECK(table.of(first) == standing::stale);
  CHECK(table.generation(5) == 7);
  REQUIRE(table.hold(5));
  table.drop(5);
  CHECK(table.of(context_table::context_of(5, 8)) == standing::stale);
}

TEST_CASE("generations go round on the wire, not in the count", "[contexts]") {
  context_table table;
  const std::uint64_t many = context_table::generations * 3ULL + 2;
  REQUIRE(table.hold(3));
  const std::uint32_t context = table.install(3, many);
  CHECK(context == context_table::context_of(3, 2));
  CHECK((context & collective_bit) == 0);
  table.remove(3);
  CHECK(table.generation(3) == many);
}

TEST_CASE("the lowest free slot is found whatever was freed in between", "[contexts]") {
  context_table table;
  std::set<std::uint32_t> taken;
  std::uint32_t seed = 1;
  for (int i = 0; i < 4000; ++i) {
    seed = seed * 1664525 + 1013904223;
    if (taken.empty() || seed >> 30 != 0) {
      const std::uint32_t at_least = seed % 5 == 0 ? seed % 300 : 0;
      std::uint32_t expected = at_least < 1 ? 1 : at_least;
      while (taken.count(expected) != 0) ++expected;
      const std::uint32_t slot = table.lowest_free(at_least);
      REQUIRE(slot == expected);
      REQUIRE(table.hold(slot));
      if (seed % 7 == 0) {
        table.drop(slot);
      } else {
        table.install(slot, 1);
        taken.insert(slot);
      }
    } else {
      auto victim = taken.begin();
      std::advance(victim, seed % taken.size());
      table.remove(*victim);
      taken.erase(victim);
    }
  }
  CHECK(taken.size() > 500);
}

TEST_CASE("slots end, and slot 0 is nobody's", "[contexts]") {
  context_table table;
  CHECK_FALSE(table.hold(0));
  CHECK_FALSE(table.hold(context_table::slots));
  REQUIRE(table.hold(context_table::slots - 1));
  CHECK(table.lowest_free(context_table::slots - 1) == context_table::slots);
  for (std::uint32_t bits : {0U, 0x7fffffffU, 0x80000000U, 0xffffffffU})
    CHECK(table.of(bits) != standing::live);
}
