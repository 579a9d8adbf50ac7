// Any text as the value of any setting: it is refused with a word about what would be right, or taken, and
// then what is shown parses to the same again.
#include "base/check.hpp"
#include "base/settings.hpp"

#include <cstdint>
#include <string>

using namespace verbena;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto rows = base::setting_rows();
  const base::setting_row& row = rows[data[0] % rows.size()];
  const std::string value(reinterpret_cast<const char*>(data) + 1, size - 1);
  base::settings first, second;
  const std::string untouched = row.show(first);
  if (const std::string right = row.parse(first, value); !right.empty()) {
    base::check(row.show(first) == untouched, "a refused value changed the setting");
    return 0;
  }
  const std::string shown = row.show(first);
  base::check(row.parse(second, shown).empty(), "a setting does not take what it shows");
  base::check(row.show(second) == shown, "a setting shows something else after taking what it showed");
  return 0;
}
