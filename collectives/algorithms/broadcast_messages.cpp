// Broadcast by messages. The root's vector is its input, everybody else's is the output.
//
// binomial      Down the tree of ranges, the whole vector each time: few rounds, for short vectors.
// scatter_ring  The root scatters n chunks down the tree, then they go round a ring (van de Geijn; Barnett et
// al.
//               1994): each rank receives little more than the vector once, however many there are. A chunk
//               is not sent to a rank that has it from the scattering.
//
// Messages in total: n-1; and n-1 for scattering plus, for each rank, the chunks that it did not get by that.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"
#include "collectives/algorithms/range_tree.hpp"

namespace verbena::collectives {
namespace {

range chunks_of(const subtree& one) {
  return {static_cast<std::uint32_t>(one.first), static_cast<std::uint32_t>(one.last - one.first)};
}

}  // namespace

schedule broadcast_binomial(int self, int size, const shape& wanted) {
  schedule result;
  builder add(result);
  const tree_place me = place_in_tree(self, size, wanted.root);
  const bool root = self == wanted.root;
  builder::index got = no_step;
  if (!root) got = add.receive(me.parent, {0, 1}, output_at(0));
  for (const subtree& child : me.children) {
    add.send(child.leader, {0, 1}, root ? input_at(0) : output_at(0), {got});
    got = no_step;  // waited for once
  }
  return result;
}

schedule broadcast_scatter_ring(int self, int size, const shape& wanted) {
  schedule result;
  result.chunks = static_cast<std::uint32_t>(size);
  builder add(result);
  if (size == 1) return result;
  const bool root = self == wanted.root;
  const auto here = [&](std::uint32_t at) { return root ? input_at(at) : output_at(at); };
  const tree_place me = place_in_tree(self, size, wanted.root);
  builder::index got = no_step;
  if (!root) got = add.receive(me.parent, chunks_of(me.own), output_at(chunks_of(me.own).first));
  for (const subtree& child : me.children) {
    const range data = chunks_of(child);
    add.send(child.leader, data, here(data.first), {got});
    got = no_step;  // waited for once
  }
  // Round k moves chunk (self - k) on. Who has led a range has its chunks already.
  const int next = (self + 1) % size;
  const subtree known = me.own;
  const subtree known_next = place_in_tree(next, size, wanted.root).own;
  const auto holds = [](const subtree& one, int chunk) { return chunk >= one.first && chunk < one.last; };
  for (int round = 0; round < size - 1; ++round) {
    const int out = (self + size - round) % size;
    const int in = (out + size - 1) % size;
    builder::index arriving = no_step;
    if (!holds(known, in))
      arriving = add.receive((self + size - 1) % size, {static_cast<std::uint32_t>(in), 1},
                             output_at(static_cast<std::uint32_t>(in)));
    if (!holds(known_next, out)) {
      add.send(next, {static_cast<std::uint32_t>(out), 1}, here(static_cast<std::uint32_t>(out)), {got});
      got = no_step;
    }
    if (arriving != no_step) got = arriving;
  }
  return result;
}

}  // namespace verbena::collectives
