// Whole contexts over TCP, as threads of one process: messages of all protocols, collectives, sleeping ranks, the end.
#include "thread_job.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <vector>

using namespace verbena;
using namespace verbena::tests;

namespace {

base::settings over_tcp(std::int64_t spin_us) {
  base::settings s;
  s.fabric = "tcp";
  s.spin_us = spin_us;
  return s;
}

/// Everybody to its neighbour, in a ring, sizes of every protocol.
std::string pass_round(context& self) {
  communicator world = self.world();
  const int me = self.rank().value, n = self.size();
  for (const std::size_t count : std::initializer_list<std::size_t>{0, 1, 100, 16'000, 70'000, 400'000}) {
    std::vector<std::uint32_t> out(count), in(count, 7);
    std::iota(out.begin(), out.end(), static_cast<std::uint32_t>(me * 1000));
    request sending = world.isend(out, rank{(me + 1) % n}, tag{3});
    world.recv(in, rank{(me + n - 1) % n}, tag{3});
    sending.wait();
    std::iota(out.begin(), out.end(), static_cast<std::uint32_t>((me + n - 1) % n * 1000));
    if (in != out) return fmt::format("rank {} received other words than were sent: {} of them", me, count);
  }
  return {};
}

}  // namespace

TEST_CASE("contexts over TCP pass messages of every protocol and reduce", "[tcp][threads]") {
  const std::int64_t spin_us = GENERATE(-1, 0);
  CHECK(complaint(run_ranks(3, over_tcp(spin_us), [](context& self) -> std::string {
          for (int lap = 0; lap < 3; ++lap) {
            if (std::string wrong = pass_round(self); !wrong.empty()) return wrong;
            const int sum = allreduce(self.world(), self.rank().value + 1);
            if (sum != 6) return fmt::format("rank {}: the sum of 1 to 3 is {}", self.rank().value, sum);
          }
          return {};
        })) == "");
}

TEST_CASE("a rank that sleeps long is woken over TCP", "[tcp][threads]") {
  CHECK(complaint(run_ranks(2, over_tcp(0), [](context& self) -> std::string {
          communicator world = self.world();
          for (int lap = 0; lap < 3; ++lap) {
            std::vector<int> words(10, lap);
            if (self.rank().value == 0) {
              ::usleep(30'000);
              world.send(words, rank{1}, tag{lap});
            } else {
              std::vector<int> in(10);
              const base::nanoseconds start = base::steady_now();
              world.recv(in, rank{0}, tag{lap});
              if (in != words) return "other words";
              if (base::steady_now() - start > 400 * base::millisecond) return "nobody woke it";
            }
          }
          return {};
        })) == "");
}
