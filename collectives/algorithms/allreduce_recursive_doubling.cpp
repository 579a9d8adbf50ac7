// All-reduce by recursive doubling (Thakur, Rabenseifner, Gropp 2005, section 4.1): log2(n) exchanges of the
// whole vector, for vectors so short that the number of rounds is what costs.
//
// n that is no power of two: with r = n - 2^k surplus ranks, ranks 0 .. 2r-1 form pairs of neighbours; the
// odd one hands its operand to the even one, which takes part for both, and gets the result in the end.
// Neighbours, so that every partial result is the product of a contiguous range of ranks: combined as (lower
// range) op (upper range), operands keep their rank order, and both partners compute the same expression, so
// the same bits.
//
// Messages: 2r + 2^k * k in total.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"

#include <bit>

namespace verbena::collectives {
namespace {

struct folding {
  int rounds;   ///< k
  int surplus;  ///< r
};

folding fold(int size) noexcept {
  const auto n = static_cast<unsigned>(size);
  const int rounds = static_cast<int>(std::bit_width(n)) - 1;
  return {rounds, size - (1 << rounds)};
}

}  // namespace

schedule allreduce_recursive_doubling(int self, int size, const shape&) {
  schedule result;
  result.scratch_chunks = 1;
  builder add(result);
  const range all{0, 1};
  const auto [rounds, surplus] = fold(size);

  if (size == 1) {
    add.copy(all, input_at(0), output_at(0));
    return result;
  }
  const bool paired = self < 2 * surplus;
  if (paired && self % 2 == 1) {
    const auto sent = add.send(self - 1, all, input_at(0));
    add.receive(self - 1, all, output_at(0), {sent});  // in place: not before the operand has left
    return result;
  }

  piece mine = input_at(0);  // in `output` from the first reduction on
  if (paired) {
    const auto got = add.receive(self + 1, all, scratch_at(0));
    add.reduce(all, mine, scratch_at(0), output_at(0), {got});
    mine = output_at(0);
  }
  const int position = paired ? self / 2 : self - surplus;
  for (int round = 0; round < rounds; ++round) {
    const int other = position ^ (1 << round);
    const int peer = other < surplus ? 2 * other : other + surplus;
    const auto got = add.receive(peer, all, scratch_at(0));
    const auto sent = add.send(peer, all, mine);
    if (other < position)
      add.reduce(all, scratch_at(0), mine, output_at(0), {got, sent});
    else
      add.reduce(all, mine, scratch_at(0), output_at(0), {got, sent});
    mine = output_at(0);
  }
  if (paired) add.send(self + 1, all, output_at(0));
  return result;
}

std::uint64_t allreduce_recursive_doubling_sent(int self, int size) noexcept {
  const auto [rounds, surplus] = fold(size);
  if (self >= 2 * surplus) return static_cast<std::uint64_t>(rounds);
  return self % 2 == 1 ? 1 : static_cast<std::uint64_t>(rounds) + 1;
}

std::uint64_t allreduce_recursive_doubling_total(int size) noexcept {
  const auto [rounds, surplus] = fold(size);
  return 2 * static_cast<std::uint64_t>(surplus) +
         (std::uint64_t{1} << rounds) * static_cast<std::uint64_t>(rounds);
}

}  // namespace verbena::collectives
