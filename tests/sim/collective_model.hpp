// What each rank brings to a collective call and what it must have in its hands afterwards, worked out one rank after
// the other. It knows the calls' meaning (MPI 4.0, chapter 6) and nothing of schedules.
#pragma once

#include "tests/sim/program.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbena::sim_tests {

/// The buffers of one rank. In place `in` is empty: the input stands in `out`, or for a scatter the output in `in`.
struct collective_buffers {
  std::vector<std::byte> in, out;
};

class collective_model {
 public:
  /// Call number `number` of a program, for the `round`-th time.
  collective_model(const collective& what, std::uint32_t number, std::uint32_t round,
                   std::size_t ranks) noexcept
      : what_(what), name_(mixed(number, round, 0xc011ec7)), ranks_(ranks) {}

  std::size_t in_bytes(std::int32_t me) const noexcept;
  std::size_t out_bytes(std::int32_t me) const noexcept;
  /// Contents before the call, of buffers as long as said above; with in place, `in` is written into its part of `out`.
  std::vector<std::byte> input(std::int32_t me) const;
  /// What `out` must be afterwards.
  std::vector<std::byte> output(std::int32_t me) const;

  /// The operator that does not commute: words are pairs of 32 bits, maps x -> a x + b, one after the other.
  static std::uint64_t chain(std::uint64_t left, std::uint64_t right) noexcept;

 private:
  std::uint64_t element(std::int32_t of, std::size_t index) const noexcept {
    return mixed(name_, static_cast<std::uint64_t>(of), index);
  }
  std::uint64_t reduced(std::size_t index) const noexcept;
  bool is_root(std::int32_t me) const noexcept { return me == what_.root; }

  const collective& what_;
  std::uint64_t name_;
  std::size_t ranks_;
};

}  // namespace verbena::sim_tests
