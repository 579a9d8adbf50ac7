#include "collectives/reduce_kernels.hpp"

#include <array>
#include <concepts>
#include <type_traits>

namespace verbena::collectives {
namespace {

template <class Type, reduction How>
[[gnu::always_inline]] inline Type apply(Type left, Type right) noexcept {
  if constexpr (How == reduction::sum || How == reduction::product) {
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
    if constexpr (std::floating_point<Type>) return left_wins || left != left ? left : right;
    return left_wins ? left : right;
  }
}

template <class Type, reduction How>
[[gnu::always_inline]] inline void loop(void* to, const void* left, const void* right,
                                        std::size_t count) noexcept {
  auto* const t = static_cast<Type*>(to);
  const auto* const a = static_cast<const Type*>(left);
  const auto* const b = static_cast<const Type*>(right);
  // No iteration depends on another, even where `to` is `left` or `right`.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) t[i] = apply<Type, How>(a[i], b[i]);
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

using row = std::array<kernel, 4>;  // by reduction
using table = std::array<row, 10>;  // by element

template <class Type>
constexpr row row_of(instruction_set set) {
#if defined(__x86_64__)
  if (set == instruction_set::avx512)
    return {with_avx512<Type, reduction::sum>, with_avx512<Type, reduction::product>,
            with_avx512<Type, reduction::min>, with_avx512<Type, reduction::max>};
  if (set == instruction_set::avx2)
    return {with_avx2<Type, reduction::sum>, with_avx2<Type, reduction::product>,
            with_avx2<Type, reduction::min>, with_avx2<Type, reduction::max>};
#endif
  return {baseline<Type, reduction::sum>, baseline<Type, reduction::product>, baseline<Type, reduction::min>,
          baseline<Type, reduction::max>};
}

constexpr table table_of(instruction_set set) {
  return {row_of<std::int8_t>(set),   row_of<std::uint8_t>(set),  row_of<std::int16_t>(set),
          row_of<std::uint16_t>(set), row_of<std::int32_t>(set),  row_of<std::uint32_t>(set),
          row_of<std::int64_t>(set),  row_of<std::uint64_t>(set), row_of<float>(set),
          row_of<double>(set)};
}

constexpr std::array<table, 3> tables = {table_of(instruction_set::baseline), table_of(instruction_set::avx2),
                                         table_of(instruction_set::avx512)};

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

}  // namespace verbena::collectives
