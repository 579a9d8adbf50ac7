// All-to-all by messages. Input: a block for each member. Output: a block from each member.
//
// bruck     Blocks travel in ceil(log2 n) hops (Bruck et al. 1997): in round k all blocks whose way, (to -
// from) mod n,
//           has bit k go 2^k ranks on, as one message. ceil(log2 n) messages of about n/2 blocks per rank,
//           for short blocks. Input and output may be the same.
// pairwise  In round k each rank sends to self + k and receives from self - k, from input to output: n-1
// messages
//           per rank, no copy, for long blocks. Input and output must not be the same.
// exchange  In round k the ranks i and j with i + j = k (mod n) swap their blocks, through a cell of scratch:
// for long
//           blocks in place. Nobody has a partner twice; whoever is his own copies.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/block_schedule.hpp"

#include <algorithm>

namespace verbena::collectives {

schedule alltoall_bruck(int self, int size, const shape&) {
  const int half = (size + 1) / 2;  // no round moves more
  schedule result = block_schedule(size, size + 2 * half);
  builder add(result);
  // Cell i: the block whose way is i.
  add.copy(blocks(size - self), input_block(self), scratch_block(0));
  if (self > 0) add.copy(blocks(self), input_block(0), scratch_block(size - self));
  builder::index sent = no_step;
  for (int bit = 1; bit < size; bit *= 2) {
    const auto for_each_run = [&](auto&& move) {
      int packed = 0;
      for (int at = bit; at < size; at += 2 * bit) {
        const int run = std::min(bit, size - at);
        move(at, run, packed);
        packed += run;
      }
      return packed;
    };
    const int moved = for_each_run([&](int at, int run, int packed) {
      add.copy(blocks(run), scratch_block(at), scratch_block(size + packed), {sent});
      sent = no_step;  // waited for once
    });
    auto got = add.receive((self + size - bit) % size, blocks(moved), scratch_block(size + half));
    sent = add.send((self + bit) % size, blocks(moved), scratch_block(size));
    for_each_run([&](int at, int run, int packed) {
      add.copy(blocks(run), scratch_block(size + half + packed), scratch_block(at), {got});
      got = no_step;
    });
  }
  // Now cell i has come from rank self - i.
  for (int i = 0; i < size; ++i)
    add.copy(blocks(1), scratch_block(i), output_block((self + size - i) % size));
  return result;
}

schedule alltoall_pairwise(int self, int size, const shape&) {
  schedule result = block_schedule(size);
  builder add(result);
  for (int k = 1; k < size; ++k) {
    const int from = (self + size - k) % size;
    const int to = (self + k) % size;
    add.receive(from, blocks(1), output_block(from));
    add.send(to, blocks(1), input_block(to));
  }
  add.copy(blocks(1), input_block(self), output_block(self));
  return result;
}

schedule alltoall_exchange(int self, int size, const shape&) {
  schedule result = block_schedule(size, size > 1 ? 1 : 0);
  builder add(result);
  for (int round = 0; round < size; ++round) {
    const int partner = (round + size - self) % size;
    if (partner == self) {
      add.copy(blocks(1), input_block(self), output_block(self));
      continue;
    }
    const auto got = add.receive(partner, blocks(1), scratch_block(0));
    const auto sent = add.send(partner, blocks(1), input_block(partner));
    add.copy(blocks(1), scratch_block(0), output_block(partner), {got, sent});
  }
  return result;
}

}  // namespace verbena::collectives
