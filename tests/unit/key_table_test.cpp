#include "transport/key_table.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>

using namespace verbena::transport;

TEST_CASE("a key opens its range only, and only while the range is registered", "[key_table]") {
  std::array<std::byte, 64> memory{};
  key_table table;
  const remote_key key = table.add({memory.data(), memory.size()});
  CHECK(table.resolve(key, 0, 64) == memory.data());
  CHECK(table.resolve(key, 64, 0) == memory.data() + 64);
  CHECK(table.resolve(key, 1, 64) == nullptr);
  CHECK(table.resolve(key, 65, 0) == nullptr);
  CHECK(table.resolve(key, UINT64_MAX, 2) == nullptr);
  CHECK(table.resolve(key, 2, UINT64_MAX) == nullptr);

  table.remove(key);
  CHECK(table.resolve(key, 0, 1) == nullptr);
  const remote_key second = table.add({memory.data(), memory.size()});
  CHECK(table.resolve(key, 0, 1) == nullptr);  // the slot is used again, the key is not
  CHECK(table.resolve(second, 0, 1) == memory.data());
  table.remove(key);  // a stale owner revokes nothing
  CHECK(table.live() == 1);
}

TEST_CASE("no single changed byte of a key opens anything", "[key_table]") {
  std::array<std::byte, 64> memory{};
  key_table table;
  const remote_key other = table.add({memory.data(), 32});
  const remote_key key = table.add({memory.data() + 32, 32});
  REQUIRE(table.resolve(other, 0, 32) == memory.data());
  for (std::size_t at = 0; at < offsetof(remote_key, fabric); ++at) {
    for (unsigned change = 1; change < 256; ++change) {
      remote_key wrong = key;
      reinterpret_cast<unsigned char*>(&wrong)[at] ^= static_cast<unsigned char>(change);
      REQUIRE(table.resolve(wrong, 0, 1) == nullptr);
    }
  }
}

TEST_CASE("regions move and revoke once", "[key_table]") {
  std::array<std::byte, 8> memory{};
  key_table table;
  {
    table_region first(table, table.add({memory.data(), 8}));
    table_region second = std::move(first);
    CHECK_FALSE(static_cast<bool>(first));
    CHECK(table.live() == 1);
    second = table_region(table, table.add({memory.data(), 4}));
    CHECK(table.live() == 1);
    CHECK(table.resolve(second.key(), 0, 4) == memory.data());
  }
  CHECK(table.live() == 0);
}
