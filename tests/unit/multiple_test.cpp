// Thread level `multiple`: several threads of each rank call at the same time.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

using namespace verbena;
using namespace verbena::tests;

namespace {

constexpr int threads_per_rank = 4;

/// Runs `body` in some threads of one rank; returns the first complaint.
std::string in_threads(const std::function<std::string(int)>& body) {
  std::vector<std::string> said(threads_per_rank);
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_per_rank; ++t)
    threads.emplace_back([&, t] {
      try {
        said[static_cast<std::size_t>(t)] = body(t);
      } catch (const std::exception& e) {
        said[static_cast<std::size_t>(t)] = fmt::format("thread {} threw: {}", t, e.what());
      }
    });
  for (std::thread& t : threads) t.join();
  return complaint(said);
}

std::string run_threads(const base::settings& how, const std::function<std::string(context&, int)>& body) {
  return complaint(run_ranks(2, how, [&](context& job) {
    job.state().doors().keep_apart();
    return in_threads([&](int t) { return body(job, t); });
  }));
}

base::settings how() { return {}; }

}  // namespace

TEST_CASE("threads with a tag each talk to their partners in order", "[multiple][threads]") {
  constexpr int messages = 12'500;  // 100,000 in all
  const std::string wrong = run_threads(how(), [](context& job, int t) -> std::string {
    const communicator world = job.world();
    const rank other{1 - world.rank().value};
    for (int i = 0; i < messages; ++i) {
      std::uint64_t in = 0, out = static_cast<std::uint64_t>(t) << 32 | static_cast<std::uint64_t>(i);
      if (world.rank() == rank{0}) {
        world.send(out, other, tag{t});
        world.recv(in, other, tag{t});
      } else {
        world.recv(in, other, tag{t});
        world.send(in, other, tag{t});
      }
      if (in != out) return fmt::format("thread {} got {:x} for {:x}", t, in, out);
    }
    return {};
  });
  INFO(wrong);
  CHECK(wrong.empty());
}

TEST_CASE("threads that share a tag receive every message once", "[multiple][threads]") {
  constexpr int messages = 12'500;
  std::vector<std::atomic<int>> seen(threads_per_rank * messages);
  const std::string wrong = run_threads(how(), [&](context& job, int t) -> std::string {
    const communicator world = job.world();
    for (int i = 0; i < messages; ++i) {
      int number = t * messages + i;
      if (world.rank() == rank{0}) {
        world.send(number, rank{1});
      } else {
        world.recv(number, any_source, any_tag);
        if (number < 0 || number >= threads_per_rank * messages) return fmt::format("got {}", number);
        ++seen[static_cast<std::size_t>(number)];
      }
    }
    return {};
  });
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
}

TEST_CASE("requests of all sizes from several threads, waited for while others do the same", "[multiple][threads]") {
  const std::string wrong = run_threads(how(), [](context& job, int t) -> std::string {
    const communicator world = job.world();
    const rank other{1 - world.rank().value};
    for (int round = 0; round < 200; ++round) {
      const auto size = static_cast<std::size_t>((round * 7919 + t * 977) % 100'000);
      std::vector<unsigned char> out(size, static_cast<unsigned char>(t + round)), in(size);
      std::vector<request> both;
      both.push_back(world.irecv(in, other, tag{t}));
      both.push_back(world.isend(out, other, tag{t}));
      wait_all(both);
      if (in != out) return fmt::format("thread {} round {}: {} bytes differ", t, round, size);
    }
    return {};
  });
  INFO(wrong);
  CHECK(wrong.empty());
}

TEST_CASE("a thread that waits long keeps nobody out", "[multiple][threads]") {
  // Thread 0 of each rank waits in a receive, thread 1 in a barrier, that end only when the other threads are done.
  const std::string wrong = run_threads(how(), [](context& job, int t) -> std::string {
    const communicator world = job.world();
    const rank other{1 - world.rank().value};
    int token = 1;
    if (t == 0) {
      world.recv(token, other, tag{100});
      if (token != 7) return "the wrong end";
    } else if (t == 1) {
      if (world.rank() == rank{1}) world.recv(token, other, tag{101});  // comes late to the barrier
      barrier(world);
    } else if (t == 2) {
      for (int i = 0; i < 1000; ++i) world.sendrecv(token, other, tag{t}, token, other, tag{t});
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (world.rank() == rank{0}) world.send(token, other, tag{101});
      world.send(7, other, tag{100});
    } else {
      for (int i = 0; i < 1000; ++i) {
        request r = world.irecv(token, other, tag{t});
        world.send(i, other, tag{t});
        while (!r.test()) std::this_thread::yield();
        r.wait();
        if (token != i) return fmt::format("got {} for {}", token, i);
      }
    }
    return {};
  });
  INFO(wrong);
  CHECK(wrong.empty());
}
