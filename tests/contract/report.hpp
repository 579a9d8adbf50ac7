// What a check of the contract has found. Checks report here instead of asserting, so that the same check can
// be held against a fabric that must pass it and against a mutant that must not.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace verbena::contract {

/// Thrown when a check cannot go on; the reason is in the report.
struct abandoned {};

class report {
 public:
  bool expect(bool holds, std::string sentence) {
    ++expectations_;
    if (!holds && failures_.size() < most_kept) failures_.push_back(std::move(sentence));
    return holds;
  }
  void require(bool holds, std::string sentence) {
    if (!expect(holds, std::move(sentence))) throw abandoned{};
  }

  bool clean() const noexcept { return failures_.empty(); }
  const std::vector<std::string>& failures() const noexcept { return failures_; }
  std::size_t expectations() const noexcept { return expectations_; }
  std::string text() const {
    std::string all;
    for (const std::string& line : failures_) all += line + "\n";
    return all;
  }

 private:
  static constexpr std::size_t most_kept = 5;
  std::vector<std::string> failures_;
  std::size_t expectations_ = 0;
};

}  // namespace verbena::contract
