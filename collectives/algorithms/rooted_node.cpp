// Broadcast, scatter, reduce and gather through the shared scratch of a node. No messages.
//
// With flags the root of a broadcast or scatter publishes what it has and goes on, and so does everybody but
// the root of a reduction or gather: nobody waits for whom it does not need, as long as all are less than two
// repetitions apart. By gathering (more members than cores) all meet.
//
// A long reduction is cut into slices: each member reduces one slice of all operands, the root collects.
// Operands are combined from rank 0 upwards.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/block_schedule.hpp"
#include "collectives/algorithms/node_steps.hpp"

namespace verbena::collectives {
namespace {

schedule on_node() {
  schedule result;
  result.on_node = true;
  return result;
}

schedule blocks_on_node(int size) {
  schedule result = block_schedule(size);
  result.on_node = size > 1;
  return result;
}

schedule alone() {
  schedule result;
  builder add(result);
  add.copy({0, 1}, input_at(0), output_at(0));
  return result;
}

/// Reduces `data` of all members in rank order to where it belongs. Our own operand is read from the input
/// where the result may lie over it in scratch.
void reduce_operands(builder& add, int self, int size, range data, piece to) {
  const auto at = data.first;
  const bool over_own = to.where == place::node;
  const auto operand = [&](int member) {
    return member == self && (member < 2 || over_own) ? input_at(at) : node_at(member, at);
  };
  add.reduce(data, operand(0), operand(1), to);
  for (int member = 2; member < size; ++member) add.reduce(data, to, operand(member), to);
}

schedule broadcast_on_node(int self, int size, int root, telling how) {
  if (size == 1) return {};
  schedule result = on_node();
  builder add(result);
  if (self == root) add.copy({0, 1}, input_at(0), node_at(self, 0));
  if (how == telling::by_gathering) {
    tell_all(add, self, size, how);
  } else {
    add.publish();
    if (self != root) add.await(root, 1);
  }
  if (self != root) add.copy({0, 1}, node_at(root, 0), output_at(0));
  if (how == telling::by_flags) learn_of_others(add, self, size);
  return result;
}

schedule scatter_on_node(int self, int size, int root, telling how) {
  schedule result = blocks_on_node(size);
  builder add(result);
  if (size > 1) {
    if (self == root) add.copy(blocks(size), input_block(0), node_block_of(self, 0));
    if (how == telling::by_gathering) {
      tell_all(add, self, size, how);
    } else {
      add.publish();
      if (self != root) add.await(root, 1);
    }
  }
  add.copy(blocks(1), self == root ? input_block(self) : node_block_of(root, self), output_block(0));
  if (size > 1 && how == telling::by_flags) learn_of_others(add, self, size);
  return result;
}

schedule gather_on_node(int self, int size, int root, telling how) {
  schedule result = blocks_on_node(size);
  builder add(result);
  if (size > 1) {
    if (self != root) add.copy(blocks(1), input_block(0), node_block_of(self, 0));
    if (how == telling::by_gathering)
      tell_all(add, self, size, how);
    else
      add.publish();
  }
  if (self == root) {
    add.copy(blocks(1), input_block(0), output_block(self));
    for (int k = 1; k < size; ++k) {
      const int member = (self + k) % size;
      if (how == telling::by_flags) add.await(member, 1);
      add.copy(blocks(1), node_block_of(member, 0), output_block(member));
    }
  }
  if (self != root && how == telling::by_flags) learn_of_others(add, self, size);
  return result;
}

schedule reduce_slices_on_node(int self, int size, int root, telling how) {
  if (size == 1) return alone();
  schedule result = on_node();
  result.chunks = static_cast<std::uint32_t>(size);
  builder add(result);
  const auto mine = static_cast<std::uint32_t>(self);
  add.copy({0, result.chunks}, input_at(0), node_at(self, 0));
  tell_all(add, self, size, how);
  // Nobody else reads this slice of our scratch: it is ours to reduce.
  reduce_operands(add, self, size, {mine, 1}, self == root ? output_at(mine) : node_at(self, mine));
  if (how == telling::by_gathering)
    tell_all(add, self, size, how);
  else
    add.publish();
  if (self == root)
    for (int k = 1; k < size; ++k) {
      const int member = (self + k) % size;
      const auto slice = static_cast<std::uint32_t>(member);
      if (how == telling::by_flags) add.await(member, 2);
      add.copy({slice, 1}, node_at(member, slice), output_at(slice));
    }
  return result;
}

}  // namespace

schedule broadcast_node(int self, int size, const shape& wanted) {
  return broadcast_on_node(self, size, wanted.root, telling::by_flags);
}
schedule broadcast_node_gathering(int self, int size, const shape& wanted) {
  return broadcast_on_node(self, size, wanted.root, telling::by_gathering);
}
schedule scatter_node(int self, int size, const shape& wanted) {
  return scatter_on_node(self, size, wanted.root, telling::by_flags);
}
schedule scatter_node_gathering(int self, int size, const shape& wanted) {
  return scatter_on_node(self, size, wanted.root, telling::by_gathering);
}
schedule gather_node(int self, int size, const shape& wanted) {
  return gather_on_node(self, size, wanted.root, telling::by_flags);
}
schedule gather_node_gathering(int self, int size, const shape& wanted) {
  return gather_on_node(self, size, wanted.root, telling::by_gathering);
}
schedule reduce_node_slices(int self, int size, const shape& wanted) {
  return reduce_slices_on_node(self, size, wanted.root, telling::by_flags);
}
schedule reduce_node_gathered_slices(int self, int size, const shape& wanted) {
  return reduce_slices_on_node(self, size, wanted.root, telling::by_gathering);
}

schedule reduce_node(int self, int size, const shape& wanted) {
  if (size == 1) return alone();
  schedule result = on_node();
  builder add(result);
  if (self != wanted.root || self > 1) add.copy({0, 1}, input_at(0), node_at(self, 0));
  add.publish();
  if (self == wanted.root) {
    await_others(add, self, size, 1);
    reduce_operands(add, self, size, {0, 1}, output_at(0));
  } else {
    learn_of_others(add, self, size);
  }
  return result;
}

schedule reduce_node_gathering(int self, int size, const shape& wanted) {
  if (size == 1) return alone();
  schedule result = on_node();
  builder add(result);
  add.copy({0, 1}, input_at(0), node_at(self, 0));
  add.arrive_combine({0, 1});
  add.wait_release();
  if (self == wanted.root) add.copy({0, 1}, node_at(0, 0), output_at(0));
  return result;
}

}  // namespace verbena::collectives
