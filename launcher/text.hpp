// What rdmarun prints about itself: help, the table of exit statuses, the table of settings. Each is read
// from the table it describes.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace verbena::launcher {

struct status_row {
  std::string_view status;
  std::string_view meaning;
};

std::span<const status_row> status_rows();

std::string help_text();
std::string status_text();
std::string settings_text();
/// The manual page (roff), made at build time from the same tables.
std::string manual_text();

}  // namespace verbena::launcher
