// Gather by messages. Input: a member's block. Output: all blocks, at the root only.
//
// binomial  Up the tree of ranges: each leader collects the blocks of its range in scratch, where they lie
// together,
//           and sends them as one message. ceil(log2 n) messages at the root, for short blocks.
// linear    Everybody sends its block to the root, which receives it where it belongs: n-1 messages at the
// root, no
//           copy, for long blocks.
//
// Messages in total: n-1.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/block_schedule.hpp"
#include "collectives/algorithms/range_tree.hpp"

namespace verbena::collectives {

schedule gather_binomial(int self, int size, const shape& wanted) {
  const tree_place me = place_in_tree(self, size, wanted.root);
  const int held = me.own.last - me.own.first;
  const bool root = self == wanted.root;
  schedule result = block_schedule(size, held > 1 ? held : 0);
  builder add(result);
  if (root) {
    add.copy(blocks(1), input_block(0), output_block(self));
  } else if (held == 1) {
    add.send(me.parent, blocks(1), input_block(0));
    return result;
  } else {
    add.copy(blocks(1), input_block(0), scratch_block(self - me.own.first));
  }
  std::vector<builder::index> got;
  for (const subtree& child : me.children)
    got.push_back(add.receive(child.leader, blocks(child.last - child.first),
                              scratch_block(child.first - me.own.first)));
  for (std::size_t i = me.children.size(); i-- > 0;) {  // the smallest range is ready first
    const subtree& child = me.children[i];
    if (root)
      add.copy(blocks(child.last - child.first), scratch_block(child.first), output_block(child.first),
               {got[i]});
    else
      add.wait({got[i]});
  }
  if (!root) add.send(me.parent, blocks(held), scratch_block(0));
  return result;
}

schedule gather_linear(int self, int size, const shape& wanted) {
  schedule result = block_schedule(size);
  builder add(result);
  if (self != wanted.root) {
    add.send(wanted.root, blocks(1), input_block(0));
    return result;
  }
  for (int k = 1; k < size; ++k) {
    const int from = (self + k) % size;
    add.receive(from, blocks(1), output_block(from));
  }
  add.copy(blocks(1), input_block(0), output_block(self));
  return result;
}

}  // namespace verbena::collectives
