// Collective operations over a communicator: every rank of it calls the same one, in the same order, with
// arguments that fit together (MPI 4.0, chapter 6).
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace verbena {

/// Reduction operators. Floating-point sums are combined in one fixed order, so all ranks get the same bits.
enum class reduction : std::uint8_t { sum, product, min, max };

/// Element types the reductions know. Unsigned types wrap; signed ones wrap too (two's complement).
enum class element : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };

template <class Type>
concept reducible =
    std::is_arithmetic_v<Type> && !std::is_same_v<Type, bool> && !std::is_same_v<Type, long double>;

template <reducible Type>
consteval element element_of() {
  if constexpr (std::is_same_v<Type, float>) return element::f32;
  if constexpr (std::is_same_v<Type, double>) return element::f64;
  constexpr int width = sizeof(Type) == 1 ? 0 : sizeof(Type) == 2 ? 2 : sizeof(Type) == 4 ? 4 : 6;
  return static_cast<element>(width + (std::is_signed_v<Type> ? 0 : 1));
}

/// Returns when every rank has called it.
VERBENA_API void barrier(communicator on);

/// Combines `count` elements of every rank's `in` and leaves the result in every rank's `out`. `in` may be
/// equal to `out`, and must not overlap it otherwise. Counts, types and operators must agree on all ranks.
VERBENA_API void allreduce(communicator on, const void* in, void* out, std::size_t count, element type,
                           reduction how);

template <class In, class Out>
requires message_range<In> && message_range<Out> &&
    std::is_same_v<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>
void allreduce(communicator on, const In& in, Out&& out, reduction how = reduction::sum) {
  using type = std::ranges::range_value_t<In>;
  if (std::ranges::size(in) != std::ranges::size(out))
    throw error(errc::invalid_argument, "allreduce: input and output have different lengths");
  allreduce(on, std::ranges::data(in), std::ranges::data(out), std::ranges::size(in), element_of<type>(),
            how);
}

/// One value.
template <reducible Type>
Type allreduce(communicator on, Type value, reduction how = reduction::sum) {
  Type result{};
  allreduce(on, &value, &result, 1, element_of<Type>(), how);
  return result;
}

}  // namespace verbena
