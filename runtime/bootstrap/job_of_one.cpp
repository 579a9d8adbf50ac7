#include "runtime/bootstrap/job_of_one.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace verbena::runtime {

job_of_one::job_of_one() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  job_.name = fmt::format("single-{}", ::getpid());
  job_.local_ranks = {0};
  job_.host = host[0] == '\0' ? "localhost" : host.data();
  job_.launched_by = "nothing (job of one)";
}

void job_of_one::publish(std::string_view key, std::span<const std::byte> value) {
  values_.insert_or_assign(std::string{key}, std::vector<std::byte>{value.begin(), value.end()});
}

std::optional<std::vector<std::byte>> job_of_one::lookup(std::uint32_t rank, std::string_view key,
                                                         base::nanoseconds) {
  const auto at = values_.find(key);
  if (rank != 0 || at == values_.end()) return std::nullopt;
  return at->second;
}

void job_of_one::abort(int status, std::string_view why) {
  fmt::print(stderr, "verbena: rank 0 on {}: aborted with status {}{}{}\n", job_.host, status,
             why.empty() ? "" : ": ", why);
  flush_if_free();
  ::_exit((status & 0xff) != 0 ? status : 1);
}

void flush_if_free() noexcept {
  if (::ftrylockfile(stdout) != 0) return;
  ::fflush_unlocked(stdout);
  ::funlockfile(stdout);
}

}  // namespace verbena::runtime
