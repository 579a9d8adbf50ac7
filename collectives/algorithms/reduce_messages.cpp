// Reduction to one rank by messages. Only the root has an output.
//
// binomial        Up the tree of ranges: each leader combines the partial results of neighbouring ranges, in
// rank
//                 order. ceil(log2 n) levels with the whole vector each, for short vectors, and for operators
//                 that do not commute. A partial result is kept in cell 0 (at the root: in the output), the
//                 next one arrives in cell 1.
// scatter_gather  Reduce-scatter around a ring in n chunks (algorithms/allreduce_ring.cpp), then each rank
// sends the
//                 chunk it has finished to the root: everybody sends the vector once in total, for long
//                 vectors. Chunk c is combined in the order c, c+1, ... c-1: operators must commute. A
//                 partial result stays in the cell where it arrived; three cells, so that one may still leave
//                 while the next two rounds go on.
//
// Messages in total: n-1; and n (n-1) + (n-1).
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"
#include "collectives/algorithms/range_tree.hpp"

#include <utility>

namespace verbena::collectives {

schedule reduce_binomial(int self, int size, const shape& wanted) {
  schedule result;
  builder add(result);
  const range all{0, 1};
  const tree_place me = place_in_tree(self, size, wanted.root);
  const bool root = self == wanted.root;
  if (size == 1) {
    add.copy(all, input_at(0), output_at(0));
    return result;
  }
  piece mine = input_at(0);
  if (!me.children.empty()) {
    result.scratch_chunks = 2;
    const piece kept = root ? output_at(0) : scratch_at(0);
    // The smallest range was split off last and lies next to us.
    for (auto child = me.children.rbegin(); child != me.children.rend(); ++child) {
      const auto got = add.receive(child->leader, all, scratch_at(1));
      const bool lower = child->leader < self;
      add.reduce(all, lower ? scratch_at(1) : mine, lower ? mine : scratch_at(1), kept, {got});
      mine = kept;
    }
  }
  if (!root) add.send(me.parent, all, mine);
  return result;
}

schedule reduce_scatter_gather(int self, int size, const shape& wanted) {
  schedule result;
  result.chunks = static_cast<std::uint32_t>(size);
  builder add(result);
  if (size == 1) {
    add.copy({0, 1}, input_at(0), output_at(0));
    return result;
  }
  result.rank_order = false;
  result.scratch_chunks = 3;
  const bool root = self == wanted.root;
  const int next = (self + 1) % size;
  const int previous = (self + size - 1) % size;
  const auto chunk = [&](int back) { return static_cast<std::uint32_t>((self + 2 * size - back) % size); };
  const auto cell = [](int round) { return scratch_at(static_cast<std::uint32_t>(round % 3)); };
  // Of the sends out of the three cells: a cell receives again when its send is over.
  builder::index left[3] = {no_step, no_step, no_step};
  const auto post = [&](int round) {
    return add.receive(previous, {chunk(round + 1), 1}, cell(round),
                       {std::exchange(left[round % 3], no_step)});
  };
  builder::index got = post(0);
  builder::index own_left =
      no_step;  // our operand of chunk `self`, which in place lies where the result comes
  for (int round = 0; round < size - 1; ++round) {
    const std::uint32_t out = chunk(round);
    const auto sent = add.send(next, {out, 1}, round == 0 ? input_at(out) : cell(round - 1));
    (round == 0 ? own_left : left[(round - 1) % 3]) = sent;
    const builder::index following = round + 1 < size - 1 ? post(round + 1) : no_step;
    const std::uint32_t in = chunk(round + 1);
    const bool last = round == size - 2;
    add.reduce({in, 1}, cell(round), input_at(in), root && last ? output_at(in) : cell(round), {got});
    got = following;
  }
  // Now chunk (self + 1) is complete here, and chunk r at rank r - 1.
  if (!root) {
    const std::uint32_t done = chunk(size - 1);
    add.send(wanted.root, {done, 1}, cell(size - 2));
    return result;
  }
  for (int k = 1; k < size; ++k) {
    const int from = (self + k) % size;
    const auto done = static_cast<std::uint32_t>((from + 1) % size);
    add.receive(from, {done, 1}, output_at(done), {from == previous ? own_left : no_step});
  }
  return result;
}

}  // namespace verbena::collectives
