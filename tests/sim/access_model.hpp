// The memory of one window as it must be: what was put where, call by call, and whether some order of the atomic
// accesses explains what they returned. It knows nothing of how accesses travel.
#pragma once

#include "tests/sim/program.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace verbena::sim_tests {

struct flagged_put {
  std::uint32_t window = 0;
  std::size_t offset = 0, size = 0;
  std::uint64_t word = 0;
};

class window_model {
 public:
  window_model(const window& what, std::uint32_t number, std::size_t ranks);

  std::size_t bytes() const noexcept { return what_.begin(static_cast<std::int32_t>(memory_.size())); }
  /// The memory of a rank's region, as all puts so far leave it. The first window::words bytes are left out of account.
  const std::vector<std::byte>& memory(std::int32_t target) const {
    return memory_[static_cast<std::size_t>(target)];
  }
  /// What is put, and that it is.
  std::vector<std::byte> put(std::int32_t target, std::size_t offset, std::size_t size);

  void added(std::int32_t target, std::uint64_t value, std::uint64_t old);
  /// What a rank that knows no better expects to find in the word for compare_swap, and a value nobody else brings.
  std::uint64_t guess(std::int32_t target, std::uint32_t pick) const;
  std::uint64_t fresh_value() noexcept { return ++values_; }
  void swapped(std::int32_t target, std::uint64_t expected, std::uint64_t desired, std::uint64_t old);

  /// An access ended with outcome_unknown: what it would have changed is not judged.
  void doubt(std::int32_t target) noexcept { doubted_[static_cast<std::size_t>(target)] = true; }
  bool doubted(std::int32_t target) const noexcept { return doubted_[static_cast<std::size_t>(target)]; }

  /// Given the two words at the end of all accesses: empty, or what is wrong.
  std::string judge_words(std::int32_t target, std::uint64_t sum, std::uint64_t last) const;

 private:
  struct addition {
    std::uint64_t value, old;
  };
  struct swap {
    std::uint64_t expected, desired, old;
  };
  const window& what_;
  std::vector<std::vector<std::byte>> memory_;  ///< by rank
  std::vector<std::vector<addition>> additions_;
  std::vector<std::vector<swap>> swaps_;
  std::vector<bool> doubted_;
  std::uint64_t values_ = 0;
  std::uint64_t puts_ = 0;
  std::uint32_t number_;
};

}  // namespace verbena::sim_tests
