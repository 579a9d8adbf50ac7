// Contexts over the real shared-memory fabric, ranks as threads.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>

using namespace verbena;
using tests::complaint;
using tests::run_ranks;

namespace {

std::vector<std::uint8_t> pattern(std::size_t size, std::size_t seed) {
  std::vector<std::uint8_t> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8) + seed);
  return data;
}

}  // namespace

TEST_CASE("ping-pong of all sizes arrives whole", "[context][threads]") {
  base::settings settings;
  settings.single_copy = GENERATE("auto", "off");
  CHECK(complaint(run_ranks(2, settings, [](context& self) -> std::string {
          const rank other{1 - self.rank().value};
          for (std::size_t size : {0u, 1u, 8u, 40u, 41u, 100u, 2000u, 4096u, 8192u, 10'000u, 65'536u, 65'537u, 300'000u,
                                   5'000'001u}) {
            for (std::size_t round = 0; round < 3; ++round) {
              const auto data = pattern(size, round);
              std::vector<std::uint8_t> into(size + 1, 0xee);
              if (self.rank().value == 0) {
                self.world().send(data, other, tag{1});
                self.world().recv(into.data(), size, other, tag{2});
              } else {
                self.world().recv(into.data(), size, other, tag{1});
                self.world().send(data, other, tag{2});
              }
              if (!std::equal(data.begin(), data.end(), into.begin()) || into[size] != 0xee)
                return fmt::format("wrong bytes at size {} round {}", size, round);
            }
          }
          return {};
        })) == "");
}

TEST_CASE("any source and any tag take what comes, in the sender's order", "[context][threads]") {
  CHECK(complaint(run_ranks(3, {}, [](context& self) -> std::string {
          constexpr int count = 500;
          if (self.rank().value != 0) {
            for (int i = 0; i < count; ++i) self.world().send(i, rank{0}, tag{i % 7});
            return {};
          }
          std::array<int, 3> next{};
          for (int i = 0; i < 2 * count; ++i) {
            int value = -1;
            const status got = self.world().recv(value, any_source, any_tag);
            const auto from = static_cast<std::size_t>(got.source.value);
            if (value != next[from] || got.label.value != value % 7 || got.bytes != sizeof value)
              return fmt::format("rank {} sent {}, expected {}", from, value, next[from]);
            ++next[from];
          }
          return {};
        })) == "");
}

TEST_CASE("many requests in both directions complete in any order of waiting", "[context][threads]") {
  CHECK(complaint(run_ranks(4, {}, [](context& self) -> std::string {
          std::vector<std::vector<std::uint8_t>> in, out;
          std::vector<request> requests;
          for (int r = 0; r < self.size(); ++r)
            for (std::size_t i = 0; i < 20; ++i) {
              const std::size_t size = i * i * 400;
              in.emplace_back(size);
              requests.push_back(self.world().irecv(in.back(), rank{r}, tag{static_cast<int>(i)}));
            }
          for (int r = 0; r < self.size(); ++r)
            for (std::size_t i = 20; i-- > 0;) {
              out.push_back(pattern(i * i * 400, i + static_cast<std::size_t>(self.rank().value)));
              requests.push_back(self.world().isend(out.back(), rank{r}, tag{static_cast<int>(i)}));
            }
          for (std::size_t i = requests.size(); i-- > 0;) requests[i].wait();
          for (std::size_t i = 0; i < in.size(); ++i)
            if (in[i] != pattern(in[i].size(), i % 20 + i / 20)) return fmt::format("receive {} has wrong bytes", i);
          return {};
        })) == "");
}

TEST_CASE("errors name rank, peer, call and sizes", "[context][threads]") {
  const auto said = run_ranks(2, {}, [](context& self) -> std::string {
    std::array<char, 8> room{};
    if (self.rank().value == 0) {
      self.world().send(std::array<char, 100>{}, rank{1}, tag{5});
      self.world().send(std::array<char, 4>{'n', 'e', 'x', 't'}, rank{1}, tag{5});
      try {
        self.world().send(room, rank{2});
      } catch (const error& e) {
        return e.what();
      }
    }
    std::string text;
    try {
      self.world().recv(room, rank{0}, tag{5});
    } catch (const error& e) {
      text = e.what();
    }
    const status got = self.world().recv(room, rank{0}, tag{5});
    return text + " | " + std::string(room.data(), got.bytes);
  });
  CHECK(said[0] == "send: rank 2 is not in this communicator (0..1)");
  CHECK(said[1] == "rank 1: recv posted 8 B, got 100 B from rank 0 tag 5 | next");
}

TEST_CASE("a receive that is destroyed is cancelled, a detached send still arrives", "[context][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          std::vector<std::uint8_t> big(1'000'000, 7), into(1'000'000);
          if (self.rank().value == 0) {
            request r = self.world().isend(big, rank{1}, tag{1});
            r.detach();
            int done = 0;
            self.world().recv(done, rank{1}, tag{2});  // makes progress; the other has it by then
            return {};
          }
          { request never = self.world().irecv(into.data(), 100, rank{0}, tag{99}); }
          self.world().recv(into, rank{0}, tag{1});
          self.world().send(1, rank{0}, tag{2});
          return into == big ? "" : "wrong bytes";
        })) == "");
}

TEST_CASE("a rank that waits long sleeps, and wakes for a message", "[context][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          int value = 0;
          if (self.rank().value == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            self.world().send(42, rank{1});
            return {};
          }
          timespec before{}, after{};
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
          self.world().recv(value, rank{0});
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
          const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                              static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
          if (value != 42) return "wrong value";
          return used < 0.05 ? "" : fmt::format("waiting 0.3 s cost {} s of CPU", used);
        })) == "");
}

TEST_CASE("a receive from a rank that left or died says so; one from anybody ends only after a death",
          "[context][threads]") {
  const auto how = GENERATE(base::rank_state::left, base::rank_state::failed);
  runtime::in_process_job job(3, true);
  std::vector<std::string> said(3);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      context self(runtime::context_state::join(job.member(r), {}));
      int value = 0;
      try {
        if (r == 0) {  // waits for rank 2, which says one thing and goes
          self.world().recv(value, rank{2});
          said[r] = fmt::format("got {}; ", value);
          self.world().recv(value, rank{2});
        } else if (r == 1) {  // waits for anybody
          self.world().recv(value, any_source, tag{7});
          said[r] = fmt::format("got {}", value);
        } else {
          self.world().send(41, rank{0});
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          tests::announce(job, 2, how, 9);
        }
      } catch (const error& e) {
        said[r] += e.what();
      }
      if (r == 0 && how == base::rank_state::left) self.world().send(43, rank{1}, tag{7});
      job.member(r)->fence(30 * base::second);
    });
  for (std::thread& t : threads) t.join();
  if (how == base::rank_state::left) {
    CHECK(said[0] == "got 41; rank 0: recv of 4 B from rank 2, any tag: rank 2 has left the job");
    CHECK(said[1] == "got 43");
  } else {
    CHECK(said[0] == "got 41; rank 0: recv of 4 B from rank 2, any tag: rank 2 was killed by signal 9");
    CHECK(said[1] == "rank 1: recv of 4 B from any rank, tag 7: a rank that might have sent is gone: "
                     "rank 2 was killed by signal 9");
  }
}

TEST_CASE("a peer that joins late is used to the full once it is there", "[context][threads]") {
  runtime::in_process_job job(2, true);
  std::uint64_t before = 0, after = 0;
  const auto rendezvous = [](const context& self) {
    for (const auto& [name, value] : self.counters())
      if (name == "rendezvous_sent") return value;
    return std::uint64_t{0};
  };
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    context self(runtime::context_state::join(job.member(1), {}));
    std::vector<std::uint8_t> into(60'000);
    self.world().recv(into, rank{0});
    self.world().send(1, rank{0});
    self.world().recv(into, rank{0});
    job.member(1)->fence(30 * base::second);
  });
  {
    context self(runtime::context_state::join(job.member(0), {}));
    const std::vector<std::uint8_t> data(60'000, 1);
    int there = 0;
    request first = self.world().isend(data, rank{1});  // nobody could say yet that memory can be shared
    before = rendezvous(self);
    self.world().recv(there, rank{1});
    first.wait();
    self.world().send(data, rank{1});
    after = rendezvous(self);
    job.member(0)->fence(30 * base::second);
  }
  late.join();
  CHECK(before == 0);
  CHECK(after == 1);
}

TEST_CASE("a rank that only sends learns that budget is free again", "[context][budget]") {
  runtime::in_process_job job(2, true);
  context sender(runtime::context_state::join(job.member(0), {}));
  context receiver(runtime::context_state::join(job.member(1), {}));
  constexpr int count = 100'000;  // several budgets' worth
  for (int i = 0; i < count; ++i) {
    int value = -1;
    if (i % 2 == 0)
      sender.world().send(i, rank{1}, tag{1});
    else
      sender.world().isend(&i, sizeof i, rank{1}, tag{1}).detach();
    receiver.world().recv(value, rank{0}, tag{1});
    REQUIRE(value == i);
  }
  for (const auto& [name, value] : sender.counters())
    if (name == "over_budget") CHECK(value == 0);
  for (const auto& [name, value] : receiver.counters())
    if (name == "grants") CHECK(value > 5);
}
