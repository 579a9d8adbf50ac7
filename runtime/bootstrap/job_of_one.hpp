// The bootstrap of a process that nobody launched: a job of one. What it publishes it can look up itself.
#pragma once

#include "runtime/bootstrap/bootstrap.hpp"

#include <map>

namespace verbena::runtime {

class job_of_one final : public bootstrap {
 public:
  job_of_one();
  const job_info& job() const override { return job_; }
  base::unique_fd segment() override { return {}; }
  void publish(std::string_view key, std::span<const std::byte> value) override;
  void fence(base::nanoseconds) override {}
  std::optional<std::vector<std::byte>> lookup(std::uint32_t rank, std::string_view key, base::nanoseconds) override;
  [[noreturn]] void abort(int status, std::string_view why) override;
  void leave() override {}

 private:
  job_info job_;
  std::map<std::string, std::vector<std::byte>, std::less<>> values_;
};

/// Flushes standard output unless another thread is just using it; for the way out of an aborting process.
void flush_if_free() noexcept;

}  // namespace verbena::runtime
