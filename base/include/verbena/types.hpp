// The two integers a program must never swap, and the wildcards of a receive. Plain values: no allocation, no
// state.
#pragma once

#include <compare>
#include <cstdint>

namespace verbena {

namespace detail {
/// What does not fit becomes a value that every call refuses, not another one's.
constexpr std::int32_t narrow(std::int64_t v) noexcept {
  return v == static_cast<std::int32_t>(v) ? static_cast<std::int32_t>(v) : INT32_MIN;
}
}  // namespace detail

/// Position of a process in a communicator, 0 <= value < size (MPI 4.0, section 2.3).
struct rank {
  std::int32_t value = 0;
  constexpr rank() = default;
  constexpr explicit rank(std::int64_t v) : value(detail::narrow(v)) {}
  friend constexpr auto operator<=>(rank, rank) = default;
};

/// Label of a message, 0 <= value <= 2^31 - 1 (MPI 4.0, section 3.2.3).
struct tag {
  std::int32_t value = 0;
  constexpr tag() = default;
  constexpr explicit tag(std::int64_t v) : value(detail::narrow(v)) {}
  friend constexpr auto operator<=>(tag, tag) = default;
};

inline constexpr rank any_source{-1};  ///< receive from whichever rank sent first
inline constexpr tag any_tag{-1};      ///< receive whatever its label

}  // namespace verbena
