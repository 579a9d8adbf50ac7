// Scatter by messages. Input: all blocks, at the root only. Output: a member's block. The mirror images of
// gather (gather_messages.cpp).
//
// binomial  Down the tree of ranges, the blocks of a range as one message out of scratch; for short blocks.
// linear    The root sends each block to whom it belongs; for long blocks.
//
// Messages in total: n-1.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/block_schedule.hpp"
#include "collectives/algorithms/range_tree.hpp"

namespace verbena::collectives {

schedule scatter_binomial(int self, int size, const shape& wanted) {
  const tree_place me = place_in_tree(self, size, wanted.root);
  const int held = me.own.last - me.own.first;
  const bool root = self == wanted.root;
  schedule result = block_schedule(size, held > 1 ? held : 0);
  builder add(result);
  if (!root && held == 1) {
    add.receive(me.parent, blocks(1), output_block(0));
    return result;
  }
  builder::index got = no_step;
  if (!root) got = add.receive(me.parent, blocks(held), scratch_block(0));
  for (const subtree& child : me.children) {  // the largest range has the longest way to go
    const range data = blocks(child.last - child.first);
    const piece from = scratch_block(child.first - me.own.first);
    if (root) add.copy(data, input_block(child.first), from);
    add.send(child.leader, data, from, {got});
    got = no_step;  // waited for once
  }
  add.copy(blocks(1), root ? input_block(self) : scratch_block(self - me.own.first), output_block(0));
  return result;
}

schedule scatter_linear(int self, int size, const shape& wanted) {
  schedule result = block_schedule(size);
  builder add(result);
  if (self != wanted.root) {
    add.receive(wanted.root, blocks(1), output_block(0));
    return result;
  }
  for (int k = 1; k < size; ++k) {
    const int to = (self + k) % size;
    add.send(to, blocks(1), input_block(to));
  }
  add.copy(blocks(1), input_block(self), output_block(0));
  return result;
}

}  // namespace verbena::collectives
