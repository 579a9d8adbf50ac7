// Operators and elements of reductions: what reduce and allreduce combine, and how (MPI 4.0, section 6.9.2
// to 6.9.5).
#pragma once

#include <verbena/export.hpp>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace verbena {

/// Reduction operators. They are applied element by element, in one fixed order of ranks for a given
/// communicator size, length and algorithm, so that all ranks get the same bits.
///
///   sum, product            numbers, complex numbers. Integers wrap, signed ones too (two's complement)
///   min, max                real numbers. NaN if any operand is NaN, on all ranks alike
///   logical_and, _or, _xor  integers and bool: 0 is false, all else is true; the result is 0 or 1
///   bit_and, _or, _xor      integers, std::byte
///   min_location, max_location   `located` pairs: the least (greatest) value and its index; among equal
///                           values the lowest index. A NaN wins over all numbers; among NaNs the lowest index
enum class reduction : std::uint8_t {
  sum,
  product,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  min_location,
  max_location,
};

/// Element types the reductions know. `boolean` is bool; `c64` and `c128` are complex<float> and
/// complex<double>; `located_*` are located<int32_t>, located<int64_t>, located<float> and located<double>.
enum class element : std::uint8_t {
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f32,
  f64,
  boolean,
  c64,
  c128,
  located_i32,
  located_i64,
  located_f32,
  located_f64,
};

/// A value and where it was found, for min_location and max_location. The index is as wide as the value, so
/// that there is no padding.
template <class Type>
requires std::is_arithmetic_v<Type> &&(sizeof(Type) == 4 || sizeof(Type) == 8) struct located {
  using index_type = std::conditional_t<sizeof(Type) == 4, std::int32_t, std::int64_t>;
  Type value;
  index_type index;
  friend bool operator==(const located&, const located&) = default;
};

namespace detail {
template <class Type>
inline constexpr int located_kind = -1;
template <>
inline constexpr int located_kind<located<std::int32_t>> = 0;
template <>
inline constexpr int located_kind<located<std::int64_t>> = 1;
template <>
inline constexpr int located_kind<located<float>> = 2;
template <>
inline constexpr int located_kind<located<double>> = 3;
}  // namespace detail

/// What can be reduced with the operators of `reduction`.
template <class Type>
concept reducible = (std::is_arithmetic_v<Type> && !std::is_same_v<Type, long double> && sizeof(Type) <= 8) ||
                    std::is_same_v<Type, std::byte> || std::is_same_v<Type, std::complex<float>> ||
                    std::is_same_v<Type, std::complex<double>> || detail::located_kind<Type> >= 0;

/// The element of a type; std::byte is u8.
template <reducible Type>
consteval element element_of() {
  if constexpr (std::is_same_v<Type, float>) {
    return element::f32;
  } else if constexpr (std::is_same_v<Type, double>) {
    return element::f64;
  } else if constexpr (std::is_same_v<Type, bool>) {
    return element::boolean;
  } else if constexpr (std::is_same_v<Type, std::byte>) {
    return element::u8;
  } else if constexpr (std::is_same_v<Type, std::complex<float>>) {
    return element::c64;
  } else if constexpr (std::is_same_v<Type, std::complex<double>>) {
    return element::c128;
  } else if constexpr (detail::located_kind<Type> >= 0) {
    return static_cast<element>(static_cast<int>(element::located_i32) + detail::located_kind<Type>);
  } else {
    constexpr int width = sizeof(Type) == 1 ? 0 : sizeof(Type) == 2 ? 2 : sizeof(Type) == 4 ? 4 : 6;
    return static_cast<element>(width + (std::is_signed_v<Type> ? 0 : 1));
  }
}

/// A user's operator: to[i] = left[i] (op) right[i] for `count` elements. `to` is exactly `left` or `right`,
/// or overlaps neither. All are aligned as the elements of the caller's buffers are, modulo 64. It must be
/// associative, must not throw, and must make no call of this library. It runs on whatever thread makes
/// progress.
using reduce_function = void (*)(void* to, const void* left, const void* right, std::size_t count,
                                 void* state);

/// A user's operator and its elements (MPI_Op_create). The same on all ranks.
struct custom_reduction {
  reduce_function combine = nullptr;
  std::size_t element_bytes = 0;  ///< 1 to 1 MiB
  /// False: operands are combined in rank order, rank 0's on the left; only algorithms that keep it are used.
  bool commutative = true;
  void* state = nullptr;  ///< handed to `combine`
};

/// `operation(left, right)` as an operator on elements of Type. `operation` must live until the reduction is
/// over.
template <class Type, class Operation>
requires std::is_trivially_copyable_v<Type> &&
    std::is_invocable_r_v<Type, Operation&, const Type&, const Type&>
        custom_reduction reduction_by(Operation& operation, bool commutative = true) {
  const reduce_function combine = [](void* to, const void* left, const void* right, std::size_t count,
                                     void* state) {
    auto& apply = *static_cast<Operation*>(state);
    const auto* const a = static_cast<const Type*>(left);
    const auto* const b = static_cast<const Type*>(right);
    auto* const result = static_cast<Type*>(to);
    for (std::size_t i = 0; i < count; ++i) result[i] = apply(a[i], b[i]);
  };
  return {combine, sizeof(Type), commutative, const_cast<std::remove_const_t<Operation>*>(&operation)};
}

}  // namespace verbena
