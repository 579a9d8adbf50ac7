#include "collectives/node_block.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace verbena::collectives;

TEST_CASE("members' slots lie apart and inside the block", "[collectives][node_block]") {
  for (int members : {1, 2, 3, 16, 128})
    for (std::size_t each : {std::size_t{1} << 20, std::size_t{64} << 10}) {
      const std::size_t bytes = 4096 + static_cast<std::size_t>(members) * each;
      // Nothing is touched: the view only computes.
      std::byte* const base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
      const node_view node(base, bytes, members);
      REQUIRE(node.valid());
      CHECK(node.slot_bytes() >= 4096);
      CHECK(node.slot_bytes() <= largest_slot);
      const auto* last_head = reinterpret_cast<std::byte*>(&node.member(members - 1)) + sizeof(member_head);
      const std::byte* end = base;
      for (int i = 0; i < members; ++i)
        for (std::uint64_t turn = 0; turn < node_slots; ++turn) {
          const std::byte* slot = node.slot(i, turn);
          CHECK(slot >= end);
          CHECK(slot >= last_head);
          CHECK(reinterpret_cast<std::uintptr_t>(slot) % line_bytes == 0);
          CHECK(node.slot(i, turn + node_slots) == slot);
          end = slot + node.slot_bytes();
        }
      CHECK(end <= base + bytes);
    }
}

TEST_CASE("a block that is too small is no block", "[collectives][node_block]") {
  alignas(64) static std::byte memory[8192];
  CHECK_FALSE(node_view(memory, sizeof memory, 2).valid());
  CHECK_FALSE(node_view(nullptr, 1 << 20, 2).valid());
  CHECK_FALSE(node_view().valid());
}
