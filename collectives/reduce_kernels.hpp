// Element-wise reductions: to[i] = left[i] (op) right[i], for every element type and operator, in the widest
// instruction set of the processor (asked once, at run time: the library is built for the oldest). Knows
// nothing of ranks.
//
// Integers wrap, signed ones too, without undefined behaviour. Minimum and maximum of floating-point numbers
// are NaN if either operand is. Equal operands in equal order give equal bits, whatever the instruction set.
#pragma once

#include <verbena/collectives.hpp>

#include <cstddef>
#include <cstdint>

namespace verbena::collectives {

/// `to` may be exactly `left` or `right` and must not overlap them otherwise. All aligned for the element.
using kernel = void (*)(void* to, const void* left, const void* right, std::size_t count) noexcept;

enum class instruction_set : std::uint8_t { baseline, avx2, avx512 };

/// The widest this processor and its operating system offer.
instruction_set best_instruction_set() noexcept;

/// The caller answers for `set` being available.
kernel find_kernel(element type, reduction how, instruction_set set) noexcept;

constexpr std::size_t element_bytes(element type) noexcept {
  constexpr std::uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return bytes[static_cast<std::size_t>(type)];
}

constexpr bool is_element(element type) noexcept {
  return static_cast<unsigned>(type) <= static_cast<unsigned>(element::f64);
}
constexpr bool is_reduction(reduction how) noexcept {
  return static_cast<unsigned>(how) <= static_cast<unsigned>(reduction::max);
}

}  // namespace verbena::collectives
