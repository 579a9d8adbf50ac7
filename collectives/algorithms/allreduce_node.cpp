// All-reduce through the shared scratch of a node; four forms. No messages.
//
// exchange   Each publishes its operand, and reads and reduces all operands itself: one synchronisation,
//            n * n reads. For two ranks at every length, and for short vectors.
// slices     Each publishes its operand, reduces one slice of all operands, publishes that; then everybody
//            collects the slices: two synchronisations, 2 n reads. For more ranks and long vectors.
// gathering  The last to come reduces everything, into the scratch of member 0: one synchronisation, n reads
//            by one core while the others wait. For more ranks than cores, where a synchronisation costs more
//            than arithmetic.
//
// gathered slices   Slices, with the two synchronisations by gathering: for more ranks than cores and long
//                   vectors.
//
// In all of them the operands are combined from rank 0 upwards, so all give the same bits. A rank reads
// its own operand from shared scratch too, except where the input is certainly still intact: in place,
// `output` overwrites it.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"
#include "collectives/algorithms/node_steps.hpp"

namespace verbena::collectives {
namespace {

/// Reduces `data` of all members in rank order into the output.
void reduce_all(builder& add, int self, int size, range data) {
  const auto at = data.first;
  const auto operand = [&](int member) {
    // Only the first two operands are read before the output is written.
    return member == self && member < 2 ? input_at(at) : node_at(member, at);
  };
  add.reduce(data, operand(0), operand(1), output_at(at));
  for (int member = 2; member < size; ++member)
    add.reduce(data, output_at(at), operand(member), output_at(at));
}

/// The part common to exchange and slices.
schedule publish_operand(int self, int size, std::uint32_t chunks, std::uint32_t ahead) {
  schedule result;
  result.on_node = true;
  result.chunks = chunks;
  result.ahead = ahead;
  builder add(result);
  add.copy({0, chunks}, input_at(0), node_at(self, 0));
  add.publish();
  await_others(add, self, size, 1);
  return result;
}

schedule alone() {
  schedule result;
  builder add(result);
  add.copy({0, 1}, input_at(0), output_at(0));
  return result;
}

}  // namespace

schedule allreduce_node_exchange(int self, int size, const shape&) {
  if (size == 1) return alone();
  schedule result = publish_operand(self, size, 1, 2);
  builder add(result);
  reduce_all(add, self, size, {0, 1});
  return result;
}

schedule allreduce_node_slices(int self, int size, const shape&) {
  if (size == 1) return alone();
  const auto mine = static_cast<std::uint32_t>(self);
  schedule result = publish_operand(self, size, static_cast<std::uint32_t>(size), 0);
  builder add(result);
  reduce_all(add, self, size, {mine, 1});
  // Nobody else reads this slice of our scratch any more: it was ours to reduce.
  add.copy({mine, 1}, output_at(mine), node_at(self, mine));
  add.publish();
  for (int k = 1; k < size; ++k) {
    const int member = (self + k) % size;
    const auto slice = static_cast<std::uint32_t>(member);
    add.await(member, 2);
    add.copy({slice, 1}, node_at(member, slice), output_at(slice));
  }
  return result;
}

schedule allreduce_node_gathered_slices(int self, int size, const shape&) {
  if (size == 1) return alone();
  const auto mine = static_cast<std::uint32_t>(self);
  schedule result;
  result.on_node = true;
  result.chunks = static_cast<std::uint32_t>(size);
  builder add(result);
  add.copy({0, result.chunks}, input_at(0), node_at(self, 0));
  add.arrive();
  add.wait_release();
  reduce_all(add, self, size, {mine, 1});
  add.copy({mine, 1}, output_at(mine), node_at(self, mine));
  add.arrive();
  add.wait_release();
  for (int k = 1; k < size; ++k) {
    const auto slice = static_cast<std::uint32_t>((self + k) % size);
    add.copy({slice, 1}, node_at(static_cast<int>(slice), slice), output_at(slice));
  }
  return result;
}

schedule allreduce_node_gathering(int self, int size, const shape&) {
  if (size == 1) return alone();
  schedule result;
  result.on_node = true;
  builder add(result);
  add.copy({0, 1}, input_at(0), node_at(self, 0));
  add.arrive_combine({0, 1});
  add.wait_release();
  add.copy({0, 1}, node_at(0, 0), output_at(0));
  return result;
}

}  // namespace verbena::collectives
