#include "collectives/choose.hpp"

#include "collectives/node_block.hpp"

#include <catch2/catch.hpp>

using namespace verbena;
using namespace verbena::collectives;

namespace {
constexpr surroundings node_of(int size, int cores) {
  return {.size = size, .node = true, .slot_bytes = 128 << 10, .cores = cores};
}
}  // namespace

TEST_CASE("on a node the block is used, whatever the length", "[collectives][choose]") {
  const base::settings none;
  CHECK(choose_allreduce(node_of(2, 2), 8, {}, none).lines);
  CHECK(choose_allreduce(node_of(2, 1), 8, {}, none).lines);
  CHECK(choose_allreduce(node_of(2, 2), largest_line_exchange, {}, none).lines);
  CHECK_FALSE(choose_allreduce(node_of(2, 2), largest_line_exchange + 1, {}, none).lines);
  CHECK(choose_allreduce(node_of(2, 2), 64 << 20, {}, none).how == method::node_exchange);
  CHECK(choose_allreduce(node_of(8, 16), 8, {}, none).lines);
  CHECK(choose_allreduce(node_of(8, 16), 1 << 20, {}, none).how == method::node_slices);
  CHECK(choose_allreduce(node_of(8, 2), 8, {}, none).how == method::node_gathering);
  CHECK(choose_allreduce(node_of(8, 2), 1 << 20, {}, none).how == method::node_gathered_slices);
  CHECK(choose_barrier(node_of(2, 2), none).lines);
  CHECK(choose_barrier(node_of(8, 2), none).how == method::barrier_gathering);
}

TEST_CASE("no segment is larger than a slot of the block", "[collectives][choose]") {
  const base::settings none;
  for (std::size_t slot : {4096U, 65536U, 131072U})
    for (int size : {2, 4, 16})
      for (std::size_t bytes = 1; bytes < (std::size_t{1} << 30); bytes *= 3) {
        surroundings here = node_of(size, 4);
        here.slot_bytes = slot;
        const choice chosen = choose_allreduce(here, bytes, {}, none);
        CHECK(chosen.segment_bytes > 0);
        if (!chosen.lines) CHECK(chosen.segment_bytes <= slot);
      }
}

TEST_CASE("by messages: few rounds for short vectors, little traffic for long ones",
          "[collectives][choose]") {
  const base::settings none;
  surroundings here;
  for (int size : {2, 3, 8, 64, 1000}) {
    here.size = size;
    CHECK(choose_allreduce(here, 8, {}, none).how == method::recursive_doubling);
    if (size > 2) CHECK(choose_allreduce(here, 256 << 20, {}, none).how == method::ring);
    bool ring = false;
    for (std::size_t bytes = 8; bytes <= (std::size_t{1} << 30); bytes *= 2) {
      const bool now = choose_allreduce(here, bytes, {}, none).how == method::ring;
      CHECK((now || !ring));  // one change-over
      ring = now;
    }
  }
  CHECK(choose_barrier(here, none).how == method::dissemination);
}

TEST_CASE("a forced algorithm is taken, where it can be", "[collectives][choose]") {
  base::settings forced;
  forced.allreduce = "ring";
  CHECK(choose_allreduce(node_of(4, 4), 8, {}, forced).how == method::ring);
  forced.allreduce = "recursive_doubling";
  CHECK(choose_allreduce(node_of(4, 4), 1 << 20, {}, forced).how == method::recursive_doubling);
  forced.allreduce = "node";
  CHECK(choose_allreduce(node_of(4, 4), 1 << 20, {}, forced).how == method::node_slices);
  forced.barrier = "dissemination";
  CHECK(choose_barrier(node_of(4, 4), forced).how == method::dissemination);
}
