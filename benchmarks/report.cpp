#include "report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

namespace bench {

report::report(const options& with, std::string library, int ranks, std::vector<column> columns)
    : with_(with), library_(std::move(library)), ranks_(ranks), columns_(std::move(columns)) {
  if (with_.json == "-") return;
  fmt::print("# {}: {}, {}, {} ranks{}\n", with_.program, title_of(with_), library_, ranks_,
             with_.check ? ", every byte checked" : "");
  fmt::print("{:<10}", "# Size");
  for (const column& c : columns_) fmt::print("{:>18}", c.heading);
  fmt::print("\n");
  std::fflush(stdout);
}

void report::row(std::uint64_t size, const std::vector<double>& values) {
  lines_.push_back({size, values});
  if (with_.json == "-") return;
  fmt::print("{:<10}", size);
  for (std::size_t i = 0; i < columns_.size(); ++i) fmt::print("{:>18.{}f}", values[i], columns_[i].digits);
  fmt::print("\n");
  std::fflush(stdout);
}

void report::finish() const {
  if (with_.json.empty()) return;
  const std::string text = json();
  if (with_.json == "-") {
    fmt::print("{}\n", text);
    return;
  }
  std::FILE* file = std::fopen(with_.json.c_str(), "w");
  const bool written = file != nullptr && std::fputs((text + "\n").c_str(), file) >= 0;
  if ((file != nullptr && std::fclose(file) != 0) || !written)
    throw std::runtime_error(fmt::format("cannot write '{}'", with_.json));
}

}  // namespace bench
