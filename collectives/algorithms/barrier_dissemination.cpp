// Barrier by dissemination (Hensgen, Finkel, Manber 1988): in round k each rank tells rank + 2^k and hears
// from rank - 2^k; after ceil(log2 n) rounds everybody has heard, directly or not, of everybody.
//
// Messages (empty ones): ceil(log2 n) per rank.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"

#include <bit>

namespace verbena::collectives {

schedule barrier_dissemination(int self, int size, const shape&) {
  schedule result;
  result.chunks = 1;
  builder add(result);
  builder::index heard = no_step;
  for (int distance = 1; distance < size; distance *= 2) {
    const auto next = add.receive((self + size - distance) % size, {}, {});
    add.send((self + distance) % size, {}, {}, {heard});
    heard = next;
  }
  return result;
}

std::uint64_t barrier_dissemination_sent(int, int size) noexcept {
  return static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(size - 1)));
}

std::uint64_t barrier_dissemination_total(int size) noexcept {
  return static_cast<std::uint64_t>(size) * barrier_dissemination_sent(0, size);
}

}  // namespace verbena::collectives
