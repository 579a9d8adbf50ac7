// The part of the arena that is given out: zero, aligned, joined again when freed.
#include "tests/unit/shm_node.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace verbena;
using namespace verbena::testing;

TEST_CASE("the arena gives out zero memory that all ranks see and takes it back whole", "[shm]") {
  shm_node node(2, 8 << 20);
  auto a = node.fabric(0);
  const std::uint64_t whole = node.places().heap_bytes;
  struct piece {
    std::uint64_t at, bytes;
  };
  std::vector<piece> live;
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    if (live.empty() || random() % 3 != 0) {
      const std::uint64_t bytes = random() % 4 == 0 ? 1 + random() % 100000 : 1 + random() % 300;
      const std::uint64_t at = a->allocate(bytes);
      if (at == 0) continue;
      CHECK(at % (bytes >= 4096 ? 4096 : 64) == 0);
      const std::byte* memory = &node.at<std::byte>(at);
      CHECK(std::all_of(memory, memory + bytes, [](std::byte b) { return b == std::byte{0}; }));
      for (const piece& p : live) CHECK((at + bytes <= p.at || p.at + p.bytes <= at));
      std::memset(&node.at<std::byte>(at), 0xaa, bytes);
      live.push_back({at, bytes});
    } else {
      const std::size_t which = random() % live.size();
      a->free(live[which].at);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const piece& p : live) a->free(p.at);
  CHECK(a->allocate(whole + 1) == 0);
  const std::uint64_t all = a->allocate(whole);
  CHECK(all != 0);
  CHECK(a->allocate(64) == 0);
  a->free(all);
  CHECK(a->world_block().size() == node.places().at.world_block_bytes);
  CHECK(a->world_block().data() == &node.at<std::byte>(node.places().at.world_block));
}
