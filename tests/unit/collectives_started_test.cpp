// Non-blocking and persistent collectives on whole contexts: order, lateness, death, and calls that do not
// fit together.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>
#include <verbena/verbena.hpp>

#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

using namespace verbena;
using std::chrono::milliseconds;

namespace {

using steady = std::chrono::steady_clock;

base::settings with(const char* allreduce) {
  base::settings settings;
  settings.allreduce = allreduce;
  if (std::string(allreduce) == "ring") {
    settings.barrier = "dissemination";
    settings.broadcast = "binomial";
    settings.allgather = "ring";
  }
  return settings;
}

std::string failure_of(const std::function<void()>& call, errc expected) {
  try {
    call();
  } catch (const error& e) {
    return e.reason() == expected ? e.what() : std::string("wrong reason: ") + e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("starting does not wait for whoever is late", "[collectives][started][threads]") {
  for (const char* algorithm : {"auto", "ring"})
    for (const std::size_t count : {std::size_t{1}, std::size_t{100000}}) {
      INFO(algorithm << ", " << count);
      const auto said = tests::run_ranks(3, with(algorithm), [&](context& self) -> std::string {
        const communicator world = self.world();
        std::vector<std::int64_t> in(count, world.rank().value + 1), out(count);
        allreduce(world, in, out);  // what is made once is made
        // Whoever is not woken looks again only after half a second: three times in a row is no accident.
        bool woken = false;
        for (int round = 0; round < 3 && !woken; ++round) {
          if (world.rank().value == 1) std::this_thread::sleep_for(milliseconds(300));
          const auto start = steady::now();
          request pending = iallreduce(world, in, out);
          const auto took = steady::now() - start;
          pending.wait();
          const auto waited = steady::now() - start;
          if (took > milliseconds(world.rank().value == 1 ? 100 : 10) && round == 2)
            return "the start took too long";
          if (world.rank().value == 0 && waited < milliseconds(200)) return "it ended before rank 1 came";
          woken =
              allreduce(world, waited < milliseconds(480) && took < milliseconds(10), reduction::logical_and);
        }
        if (!woken) return "nobody woke the waiter in time";
        return out.front() == 6 && out.back() == 6 ? "" : "wrong sum";
      });
      CHECK(tests::complaint(said) == "");
    }
}

TEST_CASE("several calls may be under way, and be waited for in any order",
          "[collectives][started][threads]") {
  for (const char* algorithm : {"auto", "ring", "node"})
    for (const std::uint32_t size : {2U, 3U, 5U}) {
      INFO(algorithm << ", " << size << " ranks");
      const auto said = tests::run_ranks(size, with(algorithm), [&](context& self) -> std::string {
        const communicator world = self.world();
        const int self_rank = world.rank().value;
        const int n = world.size();
        const std::int64_t sum = n * (n + 1) / 2;
        for (int round = 0; round < 20; ++round) {
          std::vector<std::int64_t> a(50000, self_rank + 1), b(3, 10 * (self_rank + 1)),
              c(700, 100 * (self_rank + 1));
          std::vector<std::int64_t> d(4, self_rank == round % n ? round : -1);
          std::vector<request> all;
          all.push_back(iallreduce(world, a, a));
          all.push_back(iallreduce(world, b, b));
          all.push_back(ibroadcast(world, d, rank{round % n}));
          all.push_back(iallreduce(world, c, c));
          all.push_back(ibarrier(world));
          // A blocking call in between, short enough for lines, and one that is not.
          if (allreduce(world, std::int64_t{1}) != n) return "wrong blocking sum";
          std::vector<std::int64_t> e(5000, 1);
          if (round % 2 == 0) allreduce(world, e, e);
          std::vector<std::size_t> order{4, 3, 2, 1, 0};  // in reverse, or each rank otherwise
          for (int k = 0; k < self_rank * (round % 3); ++k)
            std::rotate(order.begin(), order.begin() + 1, order.end());
          for (std::size_t which : order) all[which].wait();
          if (a[0] != sum || a[49999] != sum || b[2] != 10 * sum || c[699] != 100 * sum || d[3] != round)
            return fmt::format("wrong in round {}", round);
        }
        return {};
      });
      CHECK(tests::complaint(said) == "");
    }
}

TEST_CASE("a request that goes while its call is under way waits for it", "[collectives][started][threads]") {
  const auto said = tests::run_ranks(3, {}, [&](context& self) -> std::string {
    const communicator world = self.world();
    std::vector<std::int64_t> x(30000, 1);
    for (int round = 0; round < 5; ++round) {
      std::fill(x.begin(), x.end(), 1);
      if (world.rank().value == 2) std::this_thread::sleep_for(milliseconds(10));
      { const request gone = iallreduce(world, x, x); }
      if (x[0] != 3 || x[29999] != 3) return "the buffer was given back too early";
    }
    // A detached one goes on by itself, in whatever waits next.
    std::vector<std::int64_t> y(30000, 2);
    iallreduce(world, y, y).detach();
    barrier(world);
    ibarrier(world).wait();  // in its turn, so after it
    std::vector<std::int64_t> z(30000, 1);
    allreduce(world, z, z);
    return y[0] == 6 && y[29999] == 6 ? "" : "the detached call was not right";
  });
  CHECK(tests::complaint(said) == "");
}

TEST_CASE("a persistent call is started again and again", "[collectives][started][threads]") {
  for (const char* algorithm : {"auto", "ring"}) {
    const auto said = tests::run_ranks(3, with(algorithm), [&](context& self) -> std::string {
      const communicator world = self.world();
      std::vector<std::int64_t> in(2000), out(2000);
      std::vector<int> mine(1), all(3);
      persistent_request sums = allreduce_init(world, in, out);
      persistent_request ranks = allgather_init(world, mine, all);
      for (int round = 1; round <= 50; ++round) {
        std::fill(in.begin(), in.end(), round * (world.rank().value + 1));
        mine[0] = round + world.rank().value;
        request first = sums.start();
        request second = ranks.start();
        second.wait();
        first.wait();
        if (out[0] != 6 * round || out[1999] != 6 * round) return "wrong sum";
        if (all != std::vector<int>{round, round + 1, round + 2}) return "wrong gathering";
      }
      request pending = sums.start();
      const std::string twice = failure_of([&] { sums.start(); }, errc::invalid_argument);
      pending.wait();
      return twice.find("has not been waited for") != std::string::npos ? "" : twice;
    });
    CHECK(tests::complaint(said) == "");
  }
}

TEST_CASE("the death of a member ends every call under way", "[collectives][started][failure][threads]") {
  for (const char* algorithm : {"auto", "ring"}) {
    INFO(algorithm);
    runtime::in_process_job job(3, true);
    std::vector<std::string> said(3);
    std::vector<std::thread> threads;
    for (std::uint32_t r = 0; r < 3; ++r)
      threads.emplace_back([&, r] {
        context self(runtime::context_state::join(job.member(r), with(algorithm)));
        const communicator world = self.world();
        std::vector<std::int64_t> a(50000, 1), b(1, 1), c(900, 1);
        allreduce(world, a, a);
        if (r == 1) {
          std::this_thread::sleep_for(milliseconds(50));
          tests::announce(job, 1, base::rank_state::failed, 9);
        } else {
          std::vector<request> all;
          all.push_back(iallreduce(world, a, a));
          all.push_back(iallreduce(world, b, b));
          all.push_back(ibarrier(world));
          all.push_back(iallreduce(world, c, c));
          for (int k = 3; k >= 0; --k) {
            const std::string text =
                failure_of([&] { all[static_cast<std::size_t>(k)].wait(); }, errc::peer_failed);
            if (text.find(": rank 1 of this communicator of 3 is gone") == std::string::npos)
              said[r] += text + "; ";
          }
          said[r] +=
              failure_of([&] { barrier(world); }, errc::peer_failed).find("rank 1") == std::string::npos
                  ? "the barrier did not fail"
                  : "";
        }
        job.member(r)->fence(30 * base::second);
      });
    for (std::thread& t : threads) t.join();
    for (const std::string& text : said) CHECK(text == "");
  }
}

TEST_CASE("calls that do not fit together are refused with both sides named",
          "[collectives][mismatch][threads]") {
  struct quarrel {
    const char* what;
    const char* algorithm;
    std::function<void(communicator)> even, odd;
    const char* even_hears;  ///< a part of its error
  };
  std::vector<std::int64_t> shared(40000);
  const quarrel quarrels[] = {
      {"counts, in lines", "auto",
       [](communicator w) {
         std::vector<int> x(2);
         allreduce(w, x, x);
       },
       [](communicator w) {
         std::vector<int> x(3);
         allreduce(w, x, x);
       },
       "it brought 12 B, rank 0 brought 8 B"},
      {"counts, in the block", "auto",
       [](communicator w) {
         std::vector<int> x(5000);
         allreduce(w, x, x);
       },
       [](communicator w) {
         std::vector<int> x(4000);
         allreduce(w, x, x);
       },
       "it brought 16000 B, rank 0 brought 20000 B"},
      {"ways", "auto",
       [](communicator w) {
         std::vector<int> x(5000);
         allreduce(w, x, x);
       },
       [](communicator w) {
         std::vector<int> x(1);
         allreduce(w, x, x);
       },
       "it brought 4 B, rank 0 brought 20000 B"},
      {"calls", "auto",
       [](communicator w) {
         std::vector<int> x(1);
         allreduce(w, x, x);
       },
       [](communicator w) { barrier(w); }, "it called barrier"},
      {"operators", "auto",
       [](communicator w) {
         std::vector<int> x(1);
         allreduce(w, x, x);
       },
       [](communicator w) {
         std::vector<int> x(1);
         allreduce(w, x, x, reduction::max);
       },
       "another one"},
      {"roots", "auto",
       [](communicator w) {
         int x = 1;
         broadcast(w, x, rank{0});
       },
       [](communicator w) {
         int x = 1;
         broadcast(w, x, rank{1});
       },
       "another one"},
      {"lengths of messages", "ring",
       [](communicator w) {
         std::vector<int> x(5000);
         allreduce(w, x, x);
       },
       [](communicator w) {
         std::vector<int> x(4000);
         allreduce(w, x, x);
       },
       "16000 B, rank 0 brought 20000 B"},
      {"started calls", "auto",
       [](communicator w) {
         std::vector<int> x(500);
         iallreduce(w, x, x).wait();
       },
       [](communicator w) {
         std::vector<int> x(400);
         iallreduce(w, x, x).wait();
       },
       "it brought 1600 B"},
      {"by messages and not", "auto",
       [](communicator w) {
         std::vector<int> x(100000);
         allreduce(w, x, x);
       },
       [](communicator w) {
         std::vector<char> x(1 << 20);
         broadcast(w, x, rank{0});
       },
       "it called broadcast"},
  };
  for (const quarrel& one : quarrels) {
    INFO(one.what);
    std::string heard[2];
    const auto said = tests::run_ranks(2, with(one.algorithm), [&](context& self) -> std::string {
      const communicator world = self.world();
      const int r = world.rank().value;
      barrier(world);
      const auto start = steady::now();
      heard[r] = failure_of([&] { (r == 0 ? one.even : one.odd)(world); }, errc::mismatch);
      return steady::now() - start > std::chrono::seconds(3) ? "it took too long" : "";
    });
    CHECK(tests::complaint(said) == "");
    if (std::string(one.what) == "roots") {  // nobody waits for the other, so only the later one may see it
      CHECK((heard[0] + heard[1]).find("another one") != std::string::npos);
      continue;
    }
    CHECK_THAT(heard[0], Catch::Contains(one.even_hears) &&
                             Catch::Contains("rank 1 of this communicator of 2 made a call "
                                             "that does not fit"));
  }
}
