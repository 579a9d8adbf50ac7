#include "collectives/algorithms/algorithms.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace verbena::collectives;

namespace {
std::uint64_t sends(const schedule& s) {
  return static_cast<std::uint64_t>(std::count_if(s.steps.begin(), s.steps.end(),
                                                  [](const step& one) { return one.what == action::send; }));
}
}  // namespace

TEST_CASE("each algorithm sends as many messages as its formula says", "[collectives][algorithms]") {
  struct row {
    const char* name;
    algorithm of;
    std::uint64_t (*sent)(int, int) noexcept;
    std::uint64_t (*total)(int) noexcept;
  };
  const row rows[] = {
      {"recursive doubling", allreduce_recursive_doubling, allreduce_recursive_doubling_sent,
       allreduce_recursive_doubling_total},
      {"ring", allreduce_ring, allreduce_ring_sent, allreduce_ring_total},
      {"dissemination", barrier_dissemination, barrier_dissemination_sent, barrier_dissemination_total},
  };
  for (const row& one : rows)
    for (int size = 1; size <= 130; ++size) {
      std::uint64_t total = 0;
      for (int r = 0; r < size; ++r) {
        INFO(one.name << ", rank " << r << " of " << size);
        const std::uint64_t counted = sends(one.of(r, size, {}));
        CHECK(counted == one.sent(r, size));
        total += counted;
      }
      INFO(one.name << ", " << size << " ranks");
      CHECK(total == one.total(size));
    }
  CHECK(allreduce_recursive_doubling_total(7) == 3 * 2 + 4 * 2);
  CHECK(allreduce_ring_total(7) == 84);
  CHECK(barrier_dissemination_total(7) == 21);
}

TEST_CASE("the node algorithms send no messages", "[collectives][algorithms]") {
  for (algorithm of : {allreduce_node_exchange, allreduce_node_slices, allreduce_node_gathered_slices,
                       allreduce_node_gathering, barrier_node_exchange, barrier_node_gathering})
    for (int size : {1, 2, 5}) CHECK(sends(of(0, size, {})) == 0);
}

TEST_CASE("steps grow with the number of ranks only, scratch not even with that",
          "[collectives][algorithms]") {
  for (algorithm of : {allreduce_recursive_doubling, allreduce_ring, allreduce_node_exchange,
                       allreduce_node_slices, allreduce_node_gathered_slices, allreduce_node_gathering}) {
    const schedule s = of(3, 1024, {});
    CHECK(s.steps.size() <= 7 * 1024);
    CHECK(s.scratch_chunks <= 2);
  }
}

TEST_CASE("chunks cover a segment without gap or overlap, in whole grains", "[collectives][algorithms]") {
  for (std::uint64_t elements : {0U, 1U, 7U, 8U, 9U, 63U, 1000U, 4097U})
    for (std::uint32_t chunks : {1U, 2U, 3U, 7U, 64U})
      for (std::uint64_t grain : {1U, 8U, 16U}) {
        CHECK(chunk_begin(elements, chunks, 0, grain) == 0);
        CHECK(chunk_begin(elements, chunks, chunks, grain) == elements);
        for (std::uint32_t i = 0; i < chunks; ++i) {
          const std::uint64_t begin = chunk_begin(elements, chunks, i, grain);
          const std::uint64_t end = chunk_begin(elements, chunks, i + 1, grain);
          CHECK(begin <= end);
          CHECK(end - begin <= largest_chunk(elements, chunks, grain));
          CHECK((begin % grain == 0 || begin == elements));
        }
      }
}
