// Ranks as threads of the test, over one real node segment: the shortest way to whole contexts, and the one that the
// thread sanitizer can look into. Assertions belong to the main thread, so a rank's body returns a text, empty if right.
#pragma once

#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <verbena/verbena.hpp>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace verbena::tests {

using rank_body = std::function<std::string(context&)>;

/// Plays the launcher: tells everybody how a rank ended. `outcome` is a wait(2) status.
inline void announce(const runtime::in_process_job& job, std::uint32_t rank, base::rank_state state,
                     std::uint32_t outcome) {
  struct stat info {};
  ::fstat(job.segment_fd(), &info);
  const base::mapping segment = base::mapping::shared(job.segment_fd(), static_cast<std::size_t>(info.st_size));
  std::string why;
  if (const auto page = base::job_page::open(segment, why)) page->announce(rank, state, outcome);
}

/// Runs `body` on each of `size` ranks; returns what each of them said.
inline std::vector<std::string> run_ranks(std::uint32_t size, const base::settings& settings, const rank_body& body) {
  runtime::in_process_job job(size, true);
  std::vector<std::string> said(size);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        context self(runtime::context_state::join(job.member(r), settings));
        said[r] = body(self);
        self.state().send_kept();  // the fence makes no progress
        job.member(r)->fence(30 * base::second);  // nobody's memory goes while others may read it
      } catch (const std::exception& e) {
        said[r] = fmt::format("rank {} threw: {}", r, e.what());
        announce(job, r, base::rank_state::failed, 1 << 8);  // so that the others do not wait for it
      }
    });
  for (std::thread& t : threads) t.join();
  return said;
}

/// The first complaint, or nothing.
inline std::string complaint(const std::vector<std::string>& said) {
  for (const std::string& text : said)
    if (!text.empty()) return text;
  return {};
}

}  // namespace verbena::tests
