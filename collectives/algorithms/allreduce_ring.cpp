// All-reduce around a ring (Patarasuk, Yuan 2009): reduce-scatter, then allgather, in n chunks. Every rank
// sends 2 (n-1)/n of the vector, the least possible, in 2 (n-1) messages: for vectors so long that bandwidth
// is what costs.
//
// Chunk c starts at rank c and collects the operands of c, c+1, ... c-1 in this order, so operators must
// commute. Each chunk is reduced once and then only copied: all ranks have the same bits.
//
// A partial result arrives in scratch (two cells, used in turn) and is reduced with the rank's own operand
// into the output, from where it goes on. Chunks of the output are written once in each phase; the
// allgather's receive into chunk c waits for the send that read it.
//
// Messages: 2 (n-1) per rank, 2 n (n-1) in total.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"

#include <vector>

namespace verbena::collectives {

schedule allreduce_ring(int self, int size, const shape&) {
  schedule result;
  result.chunks = static_cast<std::uint32_t>(size);
  builder add(result);
  if (size == 1) {
    add.copy({0, 1}, input_at(0), output_at(0));
    return result;
  }
  result.rank_order = false;
  result.scratch_chunks = 2;
  const int next = (self + 1) % size;
  const int previous = (self + size - 1) % size;
  // The chunk that leaves in round k of either phase.
  const auto chunk = [&](int back) { return static_cast<std::uint32_t>((self + 2 * size - back) % size); };

  std::vector<builder::index> left(static_cast<std::size_t>(size), no_step);  // last send of each chunk
  const auto post = [&](int round) {
    const std::uint32_t in = chunk(round + 1);
    return add.receive(previous, {in, 1}, scratch_at(static_cast<std::uint32_t>(round % 2)));
  };
  piece from = input_at(chunk(0));
  builder::index got = post(0);
  for (int round = 0; round < size - 1; ++round) {
    const std::uint32_t out = chunk(round);
    const std::uint32_t in = chunk(round + 1);
    left[out] = add.send(next, {out, 1}, from);
    const builder::index following = round + 1 < size - 1 ? post(round + 1) : no_step;
    add.reduce({in, 1}, scratch_at(static_cast<std::uint32_t>(round % 2)), input_at(in), output_at(in),
               {got});
    got = following;
    from = output_at(in);
  }
  // Now chunk(size - 1) is complete here.
  builder::index arrived = no_step;
  for (int round = 0; round < size - 1; ++round) {
    const std::uint32_t out = chunk(size - 1 + round);
    const std::uint32_t in = chunk(size + round);
    const auto arriving = add.receive(previous, {in, 1}, output_at(in), {left[in]});
    left[out] = add.send(next, {out, 1}, output_at(out), {arrived});
    arrived = arriving;
  }
  return result;
}

std::uint64_t allreduce_ring_sent(int, int size) noexcept {
  return 2 * static_cast<std::uint64_t>(size - 1);
}

std::uint64_t allreduce_ring_total(int size) noexcept {
  return static_cast<std::uint64_t>(size) * allreduce_ring_sent(0, size);
}

}  // namespace verbena::collectives
