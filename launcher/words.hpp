// Lists of words as text, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

/// The words of a line, which spaces and tabs separate.
std::vector<std::string> split_words(std::string_view line);

std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace verbena::launcher
