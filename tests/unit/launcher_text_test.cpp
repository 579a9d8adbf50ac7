// The texts about rdmarun are read from the tables that the program itself obeys.
#include "launcher/text.hpp"

#include "launcher/options.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace verbena::launcher;

namespace {

std::string document() {
  std::ifstream file{VERBENA_SOURCE_ROOT "/docs/rdmarun.md"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::string joined(std::string_view names, std::string_view between) {
  std::string out;
  for (const char c : names) out += c == ',' ? std::string{between} : std::string{c};
  return out;
}

}  // namespace

TEST_CASE("every option stands in the help, the manual page and the documentation") {
  const std::string text = document();
  for (const option_row& row : option_rows()) {
    INFO(row.names);
    CHECK(help_text().find(joined(row.names, ", ")) != std::string::npos);
    CHECK(text.find(fmt::format("| `{}` | {} | {} |\n", joined(row.names, "`, `"), row.value, row.text)) !=
          std::string::npos);
    std::string escaped;
    for (const char c : row.names) escaped += c == '-' ? std::string{"\\-"} : std::string{c};
    CHECK(manual_text().find("\\fB" + escaped + "\\fR") != std::string::npos);
  }
}

TEST_CASE("every exit status stands in the help, the manual page and the documentation") {
  const std::string text = document();
  for (const status_row& row : status_rows()) {
    INFO(row.status);
    CHECK(status_text().find(row.status) != std::string::npos);
    CHECK(text.find(fmt::format("| {} | {} |\n", row.status, row.meaning)) != std::string::npos);
  }
}

TEST_CASE("the lines of the help fit a terminal") {
  for (const std::string& text : {help_text(), status_text(), settings_text()}) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      CHECK(end - begin <= 120);
  }
}
