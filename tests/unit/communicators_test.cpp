// Communicators made of others: who is in them, that their messages never meet, and that they cost nothing
// when freed.
#include "tests/sanitized.hpp"
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <numeric>
#include <random>
#include <set>

using namespace verbena;
using tests::complaint;
using tests::run_ranks;

namespace {

base::settings algorithms(const char* name) {
  base::settings forced;
  forced.allreduce = name;
  if (forced.allreduce == "ring") forced.barrier = "dissemination";
  return forced;
}

/// Everybody's rank goes round, in messages and in a reduction.
std::string works(communicator on) {
  const int n = on.size(), self = on.rank().value;
  const rank next{(self + 1) % n}, before{(self + n - 1) % n};
  int got = -1;
  request arriving = on.irecv(&got, sizeof got, before, tag{3});
  on.send(self, next, tag{3});
  arriving.wait();
  if (got != before.value) return fmt::format("rank {} of {} got {} from its neighbour", self, n, got);
  barrier(on);
  std::vector<std::int64_t> in(5000, self + 1), out(5000);
  for (const std::size_t count : {1U, 100U, 5000U}) {
    allreduce(on, std::span(in).first(count), std::span(out).first(count));
    if (out[0] != n * (n + 1) / 2 || out[count - 1] != out[0])
      return fmt::format("rank {} of {}: {} elements sum up to {}", self, n, count, out[0]);
  }
  return {};
}

std::size_t resident_pages() {
  std::size_t size = 0, resident = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%zu %zu", &size, &resident) != 2) resident = 0;
    std::fclose(f);
  }
  return resident;
}

}  // namespace

TEST_CASE("dup: the same ranks, other messages", "[communicators][threads]") {
  const auto* how = GENERATE("auto", "ring");
  const auto size = GENERATE(1U, 2U, 3U, 5U);
  CHECK(complaint(run_ranks(size, algorithms(how), [](context& self) -> std::string {
          const communicator world = self.world();
          owned_communicator first = dup(world);
          const owned_communicator second = dup(first);
          if (!first || first.size() != world.size() || first.rank() != world.rank()) return "other ranks";
          const rank next{(world.rank().value + 1) % world.size()};
          // Posted in one order, sent in another: only the communicator tells them apart.
          int a = 0, b = 0, c = 0;
          request ra = world.irecv(&a, sizeof(int)), rb = first.irecv(&b, sizeof(int)),
                  rc = second.irecv(&c, sizeof(int));
          second.send(3, next);
          first.send(2, next);
          world.send(1, next);
          for (request* r : {&ra, &rb, &rc}) r->wait();
          if (a != 1 || b != 2 || c != 3) return fmt::format("messages crossed: {} {} {}", a, b, c);
          for (const communicator on : {communicator(first), communicator(second), world})
            if (std::string said = works(on); !said.empty()) return said;
          first.free();
          if (first) return "still there after free";
          return works(second);
        })) == "");
}

TEST_CASE("split: by color, ordered by key, then by rank", "[communicators][threads]") {
  const auto* how = GENERATE("auto", "recursive_doubling");
  const auto size = GENERATE(1U, 3U, 6U);
  CHECK(complaint(run_ranks(size, algorithms(how), [](context& self) -> std::string {
          const communicator world = self.world();
          const int me = world.rank().value;
          const owned_communicator none = split(world, me % 3 == 2 ? undefined_color : me % 3, -me);
          if (static_cast<bool>(none) != (me % 3 != 2)) return "undefined_color is in, or a color is out";
          if (none) {
            const int before = (world.size() - 1 - me) / 3;  // higher ranks come first
            if (none.rank().value != before) return fmt::format("rank {} became {}", me, none.rank().value);
            if (std::string said = works(none); !said.empty()) return said;
          }
          const owned_communicator all = split(world, 2147483647, 5);
          if (all.rank() != world.rank() || all.size() != world.size())
            return "equal keys: not in rank order";
          const owned_communicator alone = split(all, me);
          if (alone.size() != 1) return "alone, but not";
          if (std::string said = works(alone); !said.empty()) return said;
          const owned_communicator node = split_node(all);
          if (node.size() != world.size() || node.rank() != world.rank())
            return "the node's ranks are not all there";
          if (std::string said = works(node); !said.empty()) return said;
          return works(self.self());
        })) == "");
}

TEST_CASE("create: the ranks of a list, in its order", "[communicators][threads]") {
  CHECK(complaint(run_ranks(5, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const int me = world.rank().value;
          const std::vector<rank> odd{rank{3}, rank{1}}, even{rank{4}, rank{0}};
          const owned_communicator made = create(world, me == 2       ? std::vector<rank>{}
                                                        : me % 2 == 1 ? odd
                                                                      : even);
          if (static_cast<bool>(made) != (me != 2)) return "who is in it?";
          if (made && made.rank().value != (me >= 3 ? 0 : 1)) return "not in the list's order";
          if (made)
            if (std::string said = works(made); !said.empty()) return said;
          const owned_communicator same = create(world, odd);  // a list that most are not in
          if (static_cast<bool>(same) != (me % 2 == 1)) return "who is in that?";
          return works(world);
        })) == "");
}

TEST_CASE("what is wrong at one rank is told to all", "[communicators][threads]") {
  CHECK(complaint(run_ranks(3, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const int me = world.rank().value;
          const auto told = [&](const std::function<void()>& call, const std::string& words) -> std::string {
            try {
              call();
            } catch (const error& e) {
              if (e.reason() == errc::invalid_argument &&
                  std::string(e.what()).find(words) != std::string::npos)
                return {};
              return fmt::format("rank {} was told: {}", me, e.what());
            }
            return fmt::format("rank {} was not told", me);
          };
          using list = std::vector<rank>;
          for (const std::string& said :
               {told([&] { split(world, me == 1 ? -7 : 0); }, "split: rank 1 gave a negative color"),
                told(
                    [&] {
                      create(world, me == 2 ? list{rank{0}, rank{3}} : list{});
                    },
                    "the list of rank 2 has a rank that"),
                told(
                    [&] {
                      create(world, me == 0 ? list{rank{0}, rank{0}} : list{});
                    },
                    "the list of rank 0 has a rank twice"),
                told(
                    [&] {
                      create(world, me == 0 ? list{rank{0}, rank{1}} : list{rank{1}, rank{0}});
                    },
                    "is not the same"),
                told(
                    [&] {
                      create(world, me == 0 ? list{rank{0}, rank{1}} : list{});
                    },
                    "rank 1 is in the list of a rank")})
            if (!said.empty()) return said;
          return works(dup(world));
        })) == "");
}

TEST_CASE("a member that is first sends at once, and what it sends is kept", "[communicators][threads]") {
  const auto* how = GENERATE("auto", "ring");
  CHECK(complaint(run_ranks(3, algorithms(how), [](context& self) -> std::string {
          const communicator world = self.world();
          for (int i = 0; i < 300; ++i) {
            const owned_communicator on = i % 2 == 0 ? dup(world) : split(world, 0, -world.rank().value);
            std::vector<int> mine(static_cast<std::size_t>(i % 3 == 0 ? 1 : i % 3 == 1 ? 3000 : 30000), i);
            std::vector<request> sending;
            for (int r = 0; r < on.size(); ++r)
              if (r != on.rank().value) sending.push_back(on.isend(mine, rank{r}));
            std::vector<int> theirs(mine.size());
            for (int r = 1; r < on.size(); ++r) {
              on.recv(theirs);
              if (theirs != mine)
                return fmt::format("round {}: rank {} got something else", i, world.rank().value);
            }
            for (request& r : sending) r.wait();
          }
          for (const auto& [name, value] : self.counters())
            if (name == "stale" && value != 0) return "an early message was dropped";
          return {};
        })) == "");
}

TEST_CASE("operations outlive the handle of their communicator", "[communicators][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          owned_communicator on = dup(world);
          std::vector<int> in(40000), out(40000, world.rank().value + 5);
          request receiving = on.irecv(in, other);
          request sending = on.isend(out, other);
          const owned_communicator witness = dup(world);  // in another slot, for this one is in use
          on.free();
          const owned_communicator next = dup(world);
          if (std::string said = works(next); !said.empty()) return said;
          receiving.wait();
          sending.wait();
          if (in != std::vector<int>(40000, other.value + 5))
            return "the message of a freed communicator is wrong";
          // A receive that is never satisfied ends with its request.
          {
            owned_communicator brief = dup(world);
            request never = brief.irecv(in, other);
            brief.free();
          }
          return works(world);
        })) == "");
}

TEST_CASE("persistent requests and matched messages outlive the handle, too", "[communicators][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          owned_communicator on = dup(world);
          std::vector<int> out(20000, world.rank().value), in(20000), matched(20000);
          persistent_request sending = on.send_init(out.data(), out.size() * sizeof(int), other, tag{2});
          persistent_request receiving = on.recv_init(in.data(), in.size() * sizeof(int), other, tag{2});
          request first = on.isend(out, other, tag{1});
          matched_message there = on.mprobe(other, tag{1});
          on.free();
          const owned_communicator next = dup(world);
          if (std::string said = works(next); !said.empty()) return said;
          for (int i = 0; i < 3; ++i) {
            request r = receiving.start(), s = sending.start();
            r.wait();
            s.wait();
            if (in != std::vector<int>(20000, other.value))
              return "a persistent request of a freed communicator is wrong";
          }
          if (there.recv(matched.data(), matched.size() * sizeof(int)).bytes != 80000 || matched != in)
            return "a matched message of a freed communicator is wrong";
          first.wait();
          return works(world);
        })) == "");
}

TEST_CASE("unreceived messages go with their communicator", "[communicators][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          for (int i = 0; i < 20; ++i) {
            owned_communicator on = dup(world);
            const std::vector<int> small(10), medium(3000), large(100000);
            if (world.rank().value == 0) {
              on.send(small, other);
              on.send(medium, other);
              request announced = on.isend(large, other);
              if (i % 2 == 0) world.send(1, other);
              announced.wait();  // ends although nobody ever receives it
              if (i % 2 == 1) world.send(1, other);
            } else {
              int word = 0;
              if (i % 2 == 0) world.recv(word, other);  // they are here when it goes
              on.free();
              if (i % 2 == 1) world.recv(word, other);  // they come when it is gone
            }
          }
          std::uint64_t stale = 0;
          for (const auto& [name, value] : self.counters())
            if (name == "stale") stale = value;
          if (stale != (world.rank().value == 0 ? 0 : 60))
            return fmt::format("rank {}: {} stale", world.rank().value, stale);
          return works(world);
        })) == "");
}

TEST_CASE("attributes are copied by dup and freed with their communicator, as their keys say",
          "[communicators][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          struct log {
            std::vector<std::string> lines;
          } said;
          const auto copy = [](communicator from, communicator to, void* value, void* extra) -> void* {
            static_cast<log*>(extra)->lines.push_back(fmt::format("copy {}", from.size() == to.size()));
            return new int(*static_cast<int*>(value) + 1);
          };
          const auto free = [](communicator, void* value, void* extra) noexcept {
            static_cast<log*>(extra)->lines.push_back(fmt::format("free {}", *static_cast<int*>(value)));
            delete static_cast<int*>(value);
          };
          const attribute_key counted(copy, free, &said), plain(nullptr, free, &said);
          owned_communicator a = dup(self.world());
          counted.set(a, new int(10));
          plain.set(a, new int(20));
          plain.set(a, new int(21));  // frees 20
          owned_communicator b = dup(a);
          if (plain.get(b) != nullptr) return "copied without a hook";
          if (*static_cast<int*>(counted.get(b)) != 11 || *static_cast<int*>(counted.get(a)) != 10)
            return "wrong values";
          {
            const owned_communicator c = split(b, 0);
            if (counted.get(c) != nullptr) return "split copies attributes";
          }
          b.free();
          counted.erase(a);
          counted.erase(a);
          counted.set(a, new int(30));
          a.free();  // the last one first
          const std::vector<std::string> expected{"free 20", "copy true", "free 11",
                                                  "free 10", "free 30",   "free 21"};
          if (said.lines != expected)
            return fmt::format("{} lines, last: {}", said.lines.size(), said.lines.back());
          try {
            counted.set(self.world(), nullptr);
            return "a null value was taken";
          } catch (const error&) {
          }
          return {};
        })) == "");
}

TEST_CASE("errors say the name of the communicator", "[communicators][threads]") {
  CHECK(complaint(run_ranks(1, {}, [](context& self) -> std::string {
          const owned_communicator on = dup(self.world());
          set_name(on, "ocean");
          if (name(on) != "ocean" || !name(self.world()).empty()) return "other names";
          on.send(std::vector<int>(3), rank{0}, tag{1});
          int word = 0;
          try {
            on.recv(word, rank{0}, tag{1});
          } catch (const error& e) {
            return std::string(e.what()).find("rank 0 of 'ocean': recv") == 0 ? "" : e.what();
          }
          return "no error";
        })) == "");
}

TEST_CASE("a member's death is told to those who make a communicator with it", "[communicators][threads]") {
  runtime::in_process_job job(2, true);
  std::string told;
  std::thread survivor([&] {
    context self(runtime::context_state::join(job.member(0), {}));
    try {
      const owned_communicator never = dup(self.world());
    } catch (const error& e) {
      told = e.what();
    }
  });
  std::thread victim([&] { context self(runtime::context_state::join(job.member(1), {})); });
  victim.join();
  tests::announce(job, 1, base::rank_state::failed, 9);
  survivor.join();
  CHECK(told.find("dup: rank 1 of this communicator of 2 is gone") == 0);
}

TEST_CASE("ten thousand communicators are alive at once, and their ids come back",
          "[communicators][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          std::vector<owned_communicator> all;
          for (int round = 0; round < 2; ++round) {
            for (int i = 0; i < 10000; ++i) all.push_back(dup(world));
            std::mt19937 random(7);
            for (int i = 0; i < 2000; ++i) {
              const std::size_t which = random() % all.size();
              const int label = static_cast<int>(which);
              int got = -1;
              request arriving = all[which].irecv(&got, sizeof got, other);
              all[which].send(label, other);
              arriving.wait();
              if (got != label) return "messages of thousands crossed";
              if (i % 20 == 0 && allreduce(all[which], 1) != 2) return "wrong sum";
            }
            std::shuffle(all.begin(), all.end(), random);
            all.clear();
          }
          const owned_communicator next = dup(world);
          const std::uint32_t slot =
              runtime::context_table::slot_of(runtime::communicator_access::state(next).context());
          return slot <= 4 ? "" : fmt::format("the next one is in slot {}", slot);
        })) == "");
}

TEST_CASE("making and freeing tens of thousands of communicators costs no memory",
          "[communicators][threads]") {
  constexpr int rounds = tests::sanitized ? 5000 : 100000;
  const char* asked = std::getenv("VERBENA_TEST_ROUNDS");
  const int wanted = asked != nullptr ? std::atoi(asked) : rounds;
  std::size_t before = 0, after = 0;
  CHECK(complaint(run_ranks(2, {}, [&](context& self) -> std::string {
          const communicator world = self.world();
          const double start = wall_time();
          for (int i = 0; i < wanted; ++i) {
            if (i == wanted / 20 && world.rank().value == 0) before = resident_pages();
            // A machine that is busy with other things gets through fewer.
            if (asked == nullptr && i >= rounds / 20 && i % 1000 == 0)
              if (allreduce(world, wall_time() - start > 15 ? 1 : 0, reduction::max) == 1) break;
            const owned_communicator on = i % 3 == 0 ? split(world, i % 2, world.rank().value) : dup(world);
            if (i % 100 == 0)
              if (std::string said = works(on); !said.empty()) return said;
          }
          barrier(world);
          if (world.rank().value == 0) after = resident_pages();
          return {};
        })) == "");
  INFO(before << " pages before, " << after << " after");
  CHECK(before > 0);
  if (!tests::sanitized) CHECK(after < before + 2000);  // sanitizers keep what is freed for a while
}
