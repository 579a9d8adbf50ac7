// Element-wise reductions: to[i] = left[i] (op) right[i], for every element type and operator, in the widest
// instruction set of the processor (asked once, at run time: the library is built for the oldest). Knows
// nothing of ranks.
//
// Integers wrap, signed ones too, without undefined behaviour. Minimum and maximum of floating-point numbers
// are NaN if either operand is, with or without a location. Equal operands in equal order give equal bits,
// whatever the instruction set.
#pragma once

#include <verbena/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbena::collectives {

/// `to` may be exactly `left` or `right` and must not overlap them otherwise. All aligned for the element.
using kernel = void (*)(void* to, const void* left, const void* right, std::size_t count) noexcept;

/// A kernel, or the user's own function. Users' functions must not throw (verbena/reduction.hpp).
class combiner {
 public:
  combiner() = default;
  combiner(kernel one) noexcept : plain_(one) {}
  combiner(const custom_reduction& users) noexcept : own_(users.combine), state_(users.state) {}

  void operator()(void* to, const void* left, const void* right, std::size_t count) const noexcept {
    if (plain_ != nullptr) [[likely]]
      return plain_(to, left, right, count);
    own_(to, left, right, count, state_);
  }

 private:
  kernel plain_ = nullptr;
  reduce_function own_ = nullptr;
  void* state_ = nullptr;
};

enum class instruction_set : std::uint8_t { baseline, avx2, avx512 };

/// The widest this processor and its operating system offer.
instruction_set best_instruction_set() noexcept;

/// The caller answers for `set` being available. Null: the operator makes no sense for such elements.
kernel find_kernel(element type, reduction how, instruction_set set) noexcept;

inline constexpr std::uint8_t bytes_of_elements[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 16, 8, 16, 8, 16};
constexpr std::size_t element_bytes(element type) noexcept {
  return bytes_of_elements[static_cast<std::size_t>(type)];
}
std::size_t element_alignment(element type) noexcept;
std::string_view name(element type) noexcept;
std::string_view name(reduction how) noexcept;

constexpr bool is_element(element type) noexcept {
  return static_cast<unsigned>(type) <= static_cast<unsigned>(element::located_f64);
}
constexpr bool is_reduction(reduction how) noexcept {
  return static_cast<unsigned>(how) <= static_cast<unsigned>(reduction::max_location);
}

}  // namespace verbena::collectives
