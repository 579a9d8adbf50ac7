#include "collectives/reduce_kernels.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace verbena::collectives {
namespace {

template <class Type>
inline constexpr bool is_complex = false;
template <class Part>
inline constexpr bool is_complex<std::complex<Part>> = true;
template <class Type>
inline constexpr bool is_located = false;
template <class Value>
inline constexpr bool is_located<located<Value>> = true;

constexpr bool is_arithmetic_operator(reduction how) {
  return how == reduction::sum || how == reduction::product;
}
constexpr bool is_logical(reduction how) {
  return how == reduction::logical_and || how == reduction::logical_or || how == reduction::logical_xor;
}
constexpr bool is_bitwise(reduction how) {
  return how == reduction::bit_and || how == reduction::bit_or || how == reduction::bit_xor;
}
constexpr bool is_extreme(reduction how) {
  return how == reduction::min || how == reduction::max;
}

/// Which operators make sense for which elements.
template <class Type>
constexpr bool makes_sense(reduction how) {
  if constexpr (is_located<Type>) return how == reduction::min_location || how == reduction::max_location;
  if constexpr (is_complex<Type>) return is_arithmetic_operator(how);
  if constexpr (std::is_same_v<Type, bool>) return is_logical(how);
  if constexpr (std::floating_point<Type>) return is_arithmetic_operator(how) || is_extreme(how);
  return is_arithmetic_operator(how) || is_extreme(how) || is_logical(how) || is_bitwise(how);
}

template <class Type>
constexpr bool is_nan([[maybe_unused]] Type value) noexcept {
  if constexpr (std::floating_point<Type>) return value != value;
  return false;
}

template <class Type, reduction How>
[[gnu::always_inline]] inline Type apply_located(Type left, Type right) noexcept {
  const bool left_nan = is_nan(left.value);
  const bool right_nan = is_nan(right.value);
  const bool level = left.value == right.value || (left_nan && right_nan);
  const bool nearer = How == reduction::min_location ? left.value < right.value : left.value > right.value;
  const bool left_wins = level ? left.index <= right.index : left_nan || (!right_nan && nearer);
  return left_wins ? left : right;
}

template <class Type, reduction How>
[[gnu::always_inline]] inline Type apply(Type left, Type right) noexcept {
  if constexpr (is_located<Type>) {
    return apply_located<Type, How>(left, right);
  } else if constexpr (is_complex<Type>) {
    if constexpr (How == reduction::sum) return {left.real() + right.real(), left.imag() + right.imag()};
    // By the schoolbook formula: no branches for infinities, so equal bits everywhere.
    return {left.real() * right.real() - left.imag() * right.imag(),
            left.real() * right.imag() + left.imag() * right.real()};
  } else if constexpr (is_logical(How)) {
    const bool a = left != Type{}, b = right != Type{};
    return static_cast<Type>(How == reduction::logical_and  ? a && b
                             : How == reduction::logical_or ? a || b
                                                            : a != b);
  } else if constexpr (is_bitwise(How)) {
    return static_cast<Type>(How == reduction::bit_and  ? left & right
                             : How == reduction::bit_or ? left | right
                                                        : left ^ right);
  } else if constexpr (is_arithmetic_operator(How)) {
    if constexpr (std::integral<Type>) {
      // In a type at least as wide as `unsigned`: a narrower one is promoted to int and could overflow.
      using unsigned_type = std::make_unsigned_t<Type>;
      using wide_type = std::conditional_t<(sizeof(Type) < sizeof(unsigned)), unsigned, unsigned_type>;
      const auto a = static_cast<wide_type>(static_cast<unsigned_type>(left));
      const auto b = static_cast<wide_type>(static_cast<unsigned_type>(right));
      return static_cast<Type>(static_cast<unsigned_type>(How == reduction::sum ? a + b : a * b));
    } else {
      return How == reduction::sum ? left + right : left * right;
    }
  } else {
    // A NaN on the right fails the comparison and is taken; one on the left is asked for.
    const bool left_wins = How == reduction::min ? left < right : left > right;
    return left_wins || is_nan(left) ? left : right;
  }
}

template <class Type, reduction How>
[[gnu::always_inline]] inline void loop(void* to, const void* left, const void* right,
                                        std::size_t count) noexcept {
  auto* const t = static_cast<Type*>(to);
  const auto* const a = static_cast<const Type*>(left);
  const auto* const b = static_cast<const Type*>(right);
  if constexpr (std::is_arithmetic_v<Type>) {
    // No iteration depends on another, even where `to` is `left` or `right`.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (std::size_t i = 0; i < count; ++i) t[i] = apply<Type, How>(a[i], b[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) t[i] = apply<Type, How>(a[i], b[i]);
  }
}

template <class Type, reduction How>
void baseline(void* to, const void* left, const void* right, std::size_t count) noexcept {
  loop<Type, How>(to, left, right, count);
}

#if defined(__x86_64__)
template <class Type, reduction How>
[[gnu::target("avx2")]] void with_avx2(void* to, const void* left, const void* right,
                                       std::size_t count) noexcept {
  loop<Type, How>(to, left, right, count);
}
template <class Type, reduction How>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void with_avx512(void* to, const void* left,
                                                                       const void* right,
                                                                       std::size_t count) noexcept {
  loop<Type, How>(to, left, right, count);
}
#endif

template <class Type, reduction How>
constexpr kernel kernel_for([[maybe_unused]] instruction_set set) {
  if constexpr (!makes_sense<Type>(How)) {
    return nullptr;
  } else if constexpr (is_bitwise(How) && std::is_signed_v<Type>) {
    return kernel_for<std::make_unsigned_t<Type>, How>(set);  // one copy of the code
  } else {
#if defined(__x86_64__)
    // Wider registers do nothing for pairs, and nothing that is worth the code for logic.
    constexpr bool wide = std::is_arithmetic_v<Type> && !is_logical(How);
    if constexpr (wide) {
      if (set == instruction_set::avx512) return with_avx512<Type, How>;
      if (set == instruction_set::avx2) return with_avx2<Type, How>;
    }
#endif
    return baseline<Type, How>;
  }
}

constexpr std::size_t operators = static_cast<std::size_t>(reduction::max_location) + 1;
constexpr std::size_t elements = static_cast<std::size_t>(element::located_f64) + 1;
using row = std::array<kernel, operators>;
using table = std::array<row, elements>;

template <class Type, std::size_t... Operators>
constexpr row row_of(instruction_set set, std::index_sequence<Operators...>) {
  return {kernel_for<Type, static_cast<reduction>(Operators)>(set)...};
}

template <class... Types>
struct type_list {
  static constexpr table kernels(instruction_set set) {
    return {row_of<Types>(set, std::make_index_sequence<operators>{})...};
  }
  static constexpr std::array<std::size_t, elements> bytes{sizeof(Types)...};
  static constexpr std::array<std::size_t, elements> alignments{alignof(Types)...};
};
using known =
    type_list<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
              std::int64_t, std::uint64_t, float, double, bool, std::complex<float>, std::complex<double>,
              located<std::int32_t>, located<std::int64_t>, located<float>, located<double>>;

static_assert([] {
  for (std::size_t i = 0; i < elements; ++i)
    if (known::bytes[i] != bytes_of_elements[i]) return false;
  return std::size(bytes_of_elements) == elements;
}());

constexpr std::array<table, 3> tables = {known::kernels(instruction_set::baseline),
                                         known::kernels(instruction_set::avx2),
                                         known::kernels(instruction_set::avx512)};

}  // namespace

instruction_set best_instruction_set() noexcept {
#if defined(__x86_64__)
  static const instruction_set best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      return instruction_set::avx512;
    return __builtin_cpu_supports("avx2") ? instruction_set::avx2 : instruction_set::baseline;
  }();
  return best;
#else
  return instruction_set::baseline;
#endif
}

kernel find_kernel(element type, reduction how, instruction_set set) noexcept {
  return tables[static_cast<std::size_t>(set)][static_cast<std::size_t>(type)][static_cast<std::size_t>(how)];
}

std::size_t element_alignment(element type) noexcept {
  return known::alignments[static_cast<std::size_t>(type)];
}

std::string_view name(element type) noexcept {
  constexpr std::string_view names[elements] = {
      "i8",  "u8",      "i16", "u16",  "i32",         "u32",         "i64",         "u64",        "f32",
      "f64", "boolean", "c64", "c128", "located_i32", "located_i64", "located_f32", "located_f64"};
  return names[static_cast<std::size_t>(type)];
}

std::string_view name(reduction how) noexcept {
  constexpr std::string_view names[operators] = {"sum",         "product",    "min",          "max",
                                                 "logical_and", "logical_or", "logical_xor",  "bit_and",
                                                 "bit_or",      "bit_xor",    "min_location", "max_location"};
  return names[static_cast<std::size_t>(how)];
}

}  // namespace verbena::collectives
