// A job of two ranks in two guests without any launcher: what they publish goes over the line between the guests. Guest 1 is
// rank 0. Whole contexts are made with it; it must not know what they publish.
#pragma once

#include "line.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

namespace verbena::tests {

class line_bootstrap final : public runtime::bootstrap {
 public:
  /// The line outlives it.
  line_bootstrap(line& to, int guest) : to_(to) {
    const auto self = static_cast<std::uint32_t>(guest - 1);
    job_ = {.name = "two guests",
            .self = self,
            .size = 2,
            .local_ranks = {self},
            .host = fmt::format("guest{}", guest),
            .launched_by = "two guests"};
  }
  const runtime::job_info& job() const override { return job_; }
  base::unique_fd segment() override { return {}; }
  void publish(std::string_view key, std::span<const std::byte> value) override {
    values_[job_.self][std::string(key)].assign(value.begin(), value.end());
  }
  /// Each side says all that it has published so far.
  void fence(base::nanoseconds) override {
    for (const auto& [key, value] : values_[job_.self]) {
      to_.say(std::as_bytes(std::span(key)));
      to_.say(value);
    }
    to_.say({});
    for (;;) {
      const std::vector<std::byte> key = to_.hear();
      if (key.empty()) return;
      values_[1 - job_.self][std::string(reinterpret_cast<const char*>(key.data()), key.size())] = to_.hear();
    }
  }
  std::optional<std::vector<std::byte>> lookup(std::uint32_t rank, std::string_view key,
                                               base::nanoseconds) override {
    const auto at = values_[rank].find(std::string(key));
    if (at == values_[rank].end()) return std::nullopt;
    return at->second;
  }
  [[noreturn]] void abort(int status, std::string_view why) override {
    fmt::print("  FAILED: {}\n", why);
    std::fflush(stdout);
    ::_exit(status != 0 ? status : 1);
  }
  void leave() override {}

 private:
  line& to_;
  runtime::job_info job_;
  std::map<std::string, std::vector<std::byte>> values_[2];
};

}  // namespace verbena::tests
