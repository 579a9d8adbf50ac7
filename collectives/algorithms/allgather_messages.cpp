// Allgather by messages. Input: a member's block. Output: all blocks, everywhere.
//
// bruck  In round k each rank hands the 2^k blocks it has, from its own on, to rank - 2^k (Bruck et al.
// 1997), all in
//        scratch, where they lie together: ceil(log2 n) messages per rank for any n; for short blocks.
// ring   Each block goes round, from output to output: n-1 messages per rank, no scratch, for long blocks.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/block_schedule.hpp"

#include <algorithm>

namespace verbena::collectives {

schedule allgather_bruck(int self, int size, const shape&) {
  schedule result = block_schedule(size, size);
  builder add(result);
  add.copy(blocks(1), input_block(0), scratch_block(0));
  builder::index got = no_step;
  for (int held = 1; held < size; held *= 2) {
    const range data = blocks(std::min(held, size - held));
    const auto next = add.receive((self + held) % size, data, scratch_block(held));
    add.send((self + size - held) % size, data, scratch_block(0), {got});
    got = next;
  }
  // Cell i is the block of rank self + i.
  add.copy(blocks(size - self), scratch_block(0), output_block(self), {got});
  if (self > 0) add.copy(blocks(self), scratch_block(size - self), output_block(0));
  return result;
}

schedule allgather_ring(int self, int size, const shape&) {
  schedule result = block_schedule(size);
  builder add(result);
  add.copy(blocks(1), input_block(0), output_block(self));
  builder::index got = no_step;
  for (int round = 0; round < size - 1; ++round) {
    const int out = (self + size - round) % size;
    const int in = (out + size - 1) % size;
    const auto next = add.receive((self + size - 1) % size, blocks(1), output_block(in));
    add.send((self + 1) % size, blocks(1), output_block(out), {got});
    got = next;
  }
  return result;
}

}  // namespace verbena::collectives
