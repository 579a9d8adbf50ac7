// A rank for the launcher's tests: joins through the library's PMIx bootstrap and then does what its first
// argument says.
#include "base/job_page.hpp"
#include "base/settings.hpp"
#include "runtime/bootstrap/pmix.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace verbena;

namespace {

constexpr base::nanoseconds patience = 20 * base::second;

std::vector<std::byte> value_of(std::uint32_t rank, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(rank * 7 + bytes));
}

/// Publishes values of several sizes in two rounds and reads everybody's.
void exchange(runtime::bootstrap& boot) {
  const auto& job = boot.job();
  for (const std::size_t bytes : {1UL, 300UL, 100'000UL}) {
    const std::string key = fmt::format("test.{}", bytes);
    boot.publish(key, value_of(job.self, bytes));
    boot.fence(patience);
    for (std::uint32_t r = 0; r < job.size; ++r) {
      const auto got = boot.lookup(r, key, patience);
      if (!got || *got != value_of(r, bytes)) {
        fmt::print("rank {} got a wrong value of rank {} ({} bytes)\n", job.self, r, bytes);
        std::exit(9);
      }
    }
  }
  if (boot.lookup(0, "test.nowhere", base::second / 2)) std::exit(10);
}

/// Maps the segment and looks at the job page.
struct node_page {
  base::mapping mapped;
  base::job_page page;

  explicit node_page(runtime::bootstrap& boot) {
    const base::unique_fd fd = boot.segment();
    struct stat about {};
    if (!fd || ::fstat(fd.get(), &about) != 0) {
      fmt::print("no segment\n");
      std::exit(11);
    }
    mapped = base::mapping::shared(fd.get(), static_cast<std::size_t>(about.st_size));
    std::string why;
    const auto opened = base::job_page::open(mapped, why);
    if (!opened) {
      fmt::print("{}\n", why);
      std::exit(12);
    }
    page = *opened;
  }
  base::rank_state state(std::uint32_t rank) const {
    return page.record(rank).state.load(std::memory_order_acquire);
  }
};

/// Waits until the job page says that a rank is dead, or the job ending; prints what it saw.
void wait_for_death(runtime::bootstrap& boot) {
  std::signal(SIGTERM, SIG_IGN);
  const node_page node{boot};
  boot.fence(patience);
  if (boot.job().self == 0) ::raise(SIGKILL);
  for (int i = 0; i < 5000; ++i) {
    if (node.state(0) == base::rank_state::failed &&
        node.page.header().ending.load(std::memory_order_acquire) == 1) {
      fmt::print("rank {} saw rank 0 fail by signal {}\n", boot.job().self,
                 node.page.record(0).outcome & 0x7f);
      std::fflush(stdout);
      ::pause();
    }
    ::usleep(1000);
  }
}

int act(const std::string& what, runtime::bootstrap& boot, int argument) {
  const auto& job = boot.job();
  if (what == "info") {
    std::string peers;
    for (const std::uint32_t r : job.local_ranks) peers += fmt::format(" {}", r);
    fmt::print("rank {} of {} local{} by {}\n", job.self, job.size, peers, job.launched_by);
  } else if (what == "exchange") {
    exchange(boot);
    fmt::print("rank {} exchanged\n", job.self);
  } else if (what == "segment") {
    const node_page node{boot};
    boot.fence(patience);
    for (const std::uint32_t r : job.local_ranks)
      if (node.state(r) != base::rank_state::joined) return 13;
    node.page.header().awake.fetch_add(1, std::memory_order_relaxed);
    boot.fence(patience);
    fmt::print("rank {} counts {}\n", job.self, node.page.header().awake.load());
  } else if (what == "sleep") {
    boot.fence(patience);
    fmt::print("rank {} sleeps\n", job.self);
    std::fflush(stdout);
    ::sleep(static_cast<unsigned>(argument));
  } else if (what == "abort") {
    boot.fence(patience);
    if (job.self == job.size - 1) boot.abort(argument, "the input is empty");
    ::pause();
  } else if (what == "noleave") {
    boot.fence(patience);
    if (job.self == 0) ::_exit(0);
    ::pause();
  } else if (what == "death") {
    wait_for_death(boot);
  } else if (what == "late") {  // rank 0 never comes: a short deadline
    try {
      boot.fence(base::second);
    } catch (const verbena::error& late) {
      fmt::print("{}\n", late.what());
      return late.reason() == errc::timed_out ? 0 : 15;
    }
    return 14;
  } else {
    return 64;
  }
  boot.leave();
  boot.leave();  // idempotent
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  try {
    const auto boot = runtime::make_pmix_bootstrap(base::read_settings());
    return act(argv[1], *boot, argc > 2 ? std::atoi(argv[2]) : 0);
  } catch (const std::exception& refused) {
    fmt::print(stderr, "client: {}\n", refused.what());
    return 3;
  }
}
