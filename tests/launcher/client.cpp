// A rank for the launcher's tests: joins through the library's PMIx bootstrap and then does what its first
// argument says.
#include "base/job_page.hpp"
#include "base/settings.hpp"
#include "runtime/bootstrap/pmix.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <verbena/context.hpp>
#include <verbena/error.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

/// A program as users write it: the public face only.
int use_context(const std::string& what) {
  verbena::context job;
  const auto world = job.world();
  const int self = world.rank().value, size = world.size();
  if (what == "context-ring") {
    std::vector<std::uint64_t> numbers(5000, static_cast<std::uint64_t>(self));
    std::uint64_t sum = static_cast<std::uint64_t>(self);
    for (int step = 1; step < size; ++step) {
      const auto right = verbena::rank{(self + 1) % size}, left = verbena::rank{(self + size - 1) % size};
      auto arriving = numbers;
      auto request = world.irecv(arriving, left);
      world.send(numbers, right);
      request.wait();
      numbers = arriving;
      sum += numbers.back();
    }
    fmt::print("rank {} sums {}\n", self, sum);
    return 0;
  }
  if (what == "context-abort") {
    if (self == 1) job.abort(6, "no more numbers");
    char nothing = 0;
    world.recv(nothing, verbena::rank{1});
  }
  if (what == "context-throw" && self == 1) throw std::runtime_error("something of the program's own");
  if (what == "context-late") ::sleep(self == 0 ? 1 : 0);
  if (what == "context-exit" && self == 1) std::exit(0);  // runs no destructor of ours
  if (what == "context-wait" || what == "context-exit" || what == "context-throw") {
    char nothing = 0;
    world.recv(nothing, verbena::rank{1});
  }
  return 0;
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
    for (const std::uint32_t r : job.local_ranks) {
      // The launcher writes it when it gets to it, which may be after the fence.
      for (int i = 0; i < 5000 && node.state(r) != base::rank_state::joined; ++i) ::usleep(1000);
      if (node.state(r) != base::rank_state::joined) return 13;
    }
    node.page.header().awake.fetch_add(1, std::memory_order_relaxed);
    boot.fence(patience);
    fmt::print("rank {} counts {}\n", job.self, node.page.header().awake.load());
  } else if (what == "cores") {
    const node_page node{boot};
    boot.fence(patience);
    fmt::print("{}\n", node.page.header().cores);
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
    if (std::string_view{argv[1]}.starts_with("context-")) return use_context(argv[1]);
    const auto boot = runtime::make_pmix_bootstrap(base::read_settings());
    return act(argv[1], *boot, argc > 2 ? std::atoi(argv[2]) : 0);
  } catch (const std::exception& refused) {
    fmt::print(stderr, "client: {}\n", refused.what());
    return 3;
  }
}
