// Reads a number that is the whole of a text: what options, settings, orders and other launchers' variables hold. It must not know
// what the number means.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace verbena::base {

/// False, and nothing has changed: `text` is no such number, has something before or behind it, or does not fit.
template <class Integer>
bool parse_number(std::string_view text, Integer& into) noexcept {
  Integer value{};
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc{} || stop != end) return false;
  into = value;
  return true;
}

}  // namespace verbena::base
