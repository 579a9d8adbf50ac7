// What can be the contents of a message: concepts for the typed forms of the calls.
#pragma once

#include <ranges>
#include <type_traits>

namespace verbena {

/// Anything contiguous and sized whose elements can be moved byte by byte: std::span, std::vector,
/// std::array, ...
template <class Range>
concept message_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

/// A range whose elements outlive the expression it stands in: a named one, or a view such as std::span, by value.
/// What is started and goes on takes no other: a temporary vector would be gone before it is read.
template <class Range>
concept lasting_message_range = message_range<Range> && std::ranges::borrowed_range<Range>;

/// One object moved byte by byte.
template <class Object>
concept message_object =
    std::is_trivially_copyable_v<Object> && !std::ranges::range<Object> && !std::is_pointer_v<Object>;

}  // namespace verbena
