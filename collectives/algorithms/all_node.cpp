// Allgather and all-to-all through the shared scratch of a node: each publishes its block, or its block for
// each, and copies what it needs from all others. No messages. In two forms: each looks at each other one, or
// (more members than cores) all gather.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/block_schedule.hpp"
#include "collectives/algorithms/node_steps.hpp"

namespace verbena::collectives {
namespace {

schedule all_on_node(int self, int size, int per_member, telling how) {
  const bool to_each = per_member > 1;  // each member has a block of its own for us
  schedule result = block_schedule(size);
  builder add(result);
  if (size > 1) {
    result.on_node = true;
    add.copy(blocks(per_member), input_block(0), node_block_of(self, 0));
    if (how == telling::by_flags) {
      add.publish();
      result.ahead = 2;
      await_others(add, self, size, 1);
    } else {
      tell_all(add, self, size, how);
    }
  }
  add.copy(blocks(1), input_block(to_each ? self : 0), output_block(self));
  for (int k = 1; k < size; ++k) {
    const int member = (self + k) % size;
    add.copy(blocks(1), node_block_of(member, to_each ? self : 0), output_block(member));
  }
  return result;
}

}  // namespace

schedule allgather_node(int self, int size, const shape&) {
  return all_on_node(self, size, 1, telling::by_flags);
}
schedule allgather_node_gathering(int self, int size, const shape&) {
  return all_on_node(self, size, 1, telling::by_gathering);
}
schedule alltoall_node(int self, int size, const shape&) {
  return all_on_node(self, size, size, telling::by_flags);
}
schedule alltoall_node_gathering(int self, int size, const shape&) {
  return all_on_node(self, size, size, telling::by_gathering);
}

}  // namespace verbena::collectives
