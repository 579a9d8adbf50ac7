// One-sided access between ranks of a node: by the fabric, by packets, into ordinary memory and into memory
// that they share.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <memory_resource>
#include <numeric>

using namespace verbena;
using tests::complaint;
using tests::run_ranks;

namespace {

/// "auto": puts and gets by the fabric, atomics by packets. "off": all by packets, but for shared memory.
base::settings single_copy(const char* how) {
  base::settings s;
  s.single_copy = how;
  return s;
}

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<unsigned>(seed));
  return data;
}

/// A region at each rank, and everybody's keys.
struct windows {
  windows(context& self, std::size_t bytes, bool shared)
      : world(self.world()),
        memory(bytes, shared ? &verbena::memory(self) : std::pmr::new_delete_resource()),
        mine(register_memory(world, memory)),
        keys(static_cast<std::size_t>(world.size())) {
    for (int r = 0; r < world.size(); ++r) world.send(mine.key(), rank{r}, tag{77});
    for (int r = 0; r < world.size(); ++r) world.recv(keys[static_cast<std::size_t>(r)], rank{r}, tag{77});
  }
  const remote_key& of(rank r) const { return keys[static_cast<std::size_t>(r.value)]; }

  communicator world;
  std::pmr::vector<std::byte> memory;
  region mine;
  std::vector<remote_key> keys;
};

std::string refused(errc why, const std::string& words, const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    if (e.reason() == why && std::string(e.what()).find(words) != std::string::npos) return {};
    return fmt::format("instead of '{}': {}", words, e.what());
  }
  return "not refused: " + words;
}

bool same(const std::byte* a, const std::byte* b, std::size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

std::uint64_t counter(const context& of, std::string_view name) {
  for (const auto& [known, value] : of.counters())
    if (known == name) return value;
  return 0;
}

}  // namespace

TEST_CASE("put and get move the bytes they are told to, and no other", "[one_sided][threads]") {
  const auto* how = GENERATE("auto", "off");
  const bool shared = GENERATE(true, false);
  const auto ranks = GENERATE(1U, 2U, 3U);
  INFO(how << ", shared " << shared << ", " << ranks << " ranks");
  CHECK(complaint(run_ranks(ranks, single_copy(how), [&](context& self) -> std::string {
          windows w(self, 300000, shared);
          const int n = w.world.size(), me = w.world.rank().value;
          const rank next{(me + 1) % n}, before{(me + n - 1) % n};
          std::fill(w.memory.begin(), w.memory.end(), std::byte{0xee});
          barrier(w.world);
          for (const std::size_t bytes : {0U, 1U, 8U, 4000U, 5000U, 200001U}) {
            const auto out = pattern(bytes, me);
            put(w.world, out, next, w.of(next), 100);
            flush(w.world, next);
            barrier(w.world);
            if (!same(w.memory.data() + 100, pattern(bytes, before.value).data(), bytes))
              return fmt::format("put of {} B: wrong bytes", bytes);
            if (w.memory[99] != std::byte{0xee} || w.memory[100 + bytes] != std::byte{0xee})
              return "put beyond its range";
            std::vector<std::byte> in(bytes + 1, std::byte{0x11});
            get(w.world, in.data(), bytes, next, w.of(next), 100);
            if (!same(in.data(), out.data(), bytes) || in[bytes] != std::byte{0x11})
              return fmt::format("get of {} B: wrong bytes", bytes);
            std::vector<std::byte> again(bytes);
            request reading = iget(w.world, again.data(), bytes, next, w.of(next), 100);
            if (reading.wait().bytes != bytes || again != out) return "iget: wrong bytes";
            barrier(w.world);
            std::fill(w.memory.begin(), w.memory.end(), std::byte{0xee});
            barrier(w.world);
          }
          return counter(self, "malformed") == 0 ? "" : "malformed packets";
        })) == "");
}

TEST_CASE("a message that follows a put, and the word of a put, come after its data",
          "[one_sided][threads]") {
  const auto* how = GENERATE("auto", "off");
  const bool shared = GENERATE(true, false);
  CHECK(complaint(run_ranks(2, single_copy(how), [&](context& self) -> std::string {
          windows w(self, 100000, shared);
          const rank other{1 - w.world.rank().value};
          for (int i = 0; i < 40; ++i) {
            const std::size_t bytes = static_cast<std::size_t>(i * 7919 % 90000);
            const auto data = pattern(bytes, i);
            if (w.world.rank().value == 0) {
              request writing = iput(w.world, data.data(), bytes, other, w.of(other), 5);
              w.world.send(i, other);
              writing.wait();
              w.world.recv(i, other);
              put_with_flag(w.world, data.data(), bytes / 2, other, w.of(other), 9,
                            static_cast<std::uint64_t>(i));
              put_with_flag(w.world, nullptr, 0, other, w.of(other), 0, ~static_cast<std::uint64_t>(i));
              w.world.recv(i, other);
            } else {
              int round = -1;
              w.world.recv(round, other);
              if (!same(w.memory.data() + 5, data.data(), bytes)) return "the message came before the put";
              w.world.send(round, other);
              std::optional<std::uint64_t> word;
              if (i % 2 == 0)
                word = wait_flag(w.world, other);
              else
                while (!(word = test_flag(w.world, other))) {
                }
              if (*word != static_cast<std::uint64_t>(i)) return fmt::format("word {} in round {}", *word, i);
              if (!same(w.memory.data() + 9, data.data(), bytes / 2)) return "the word came before the data";
              if (wait_flag(w.world, other) != ~static_cast<std::uint64_t>(i))
                return "the words came out of order";
              if (test_flag(w.world, other)) return "a word that nobody sent";
              w.world.send(round, other);
            }
          }
          return {};
        })) == "");
}

TEST_CASE("atomics of all ranks on one word lose nothing", "[one_sided][threads]") {
  const bool shared = GENERATE(true, false);
  CHECK(complaint(run_ranks(3, {}, [&](context& self) -> std::string {
          windows w(self, 64, shared);
          barrier(w.world);
          const rank home{0};
          constexpr std::uint64_t rounds = 2000;
          std::uint64_t largest = 0;
          for (std::uint64_t i = 0; i < rounds; ++i) {
            const std::uint64_t old = fetch_add(w.world, 1, home, w.of(home), 8);
            if (i > 0 && old <= largest) return "a sum went back";
            largest = old;
            // And a lock-free sum by compare and swap.
            for (std::uint64_t seen = 0, found = 0;; seen = found) {
              found = compare_swap(w.world, seen, seen + 3, home, w.of(home), 16);
              if (found == seen) break;
            }
          }
          std::uint64_t old = 7;
          ifetch_add(w.world, 0, home, w.of(home), 24, old).wait();
          if (old != 0) return "an untouched word is not zero";
          barrier(w.world);
          if (w.world.rank() == home) {
            std::uint64_t sums[2];
            std::memcpy(sums, w.memory.data() + 8, sizeof sums);
            if (sums[0] != 3 * rounds || sums[1] != 9 * rounds)
              return fmt::format("sums {} and {}", sums[0], sums[1]);
          }
          barrier(w.world);
          request swapping = icompare_swap(w.world, 3 * rounds, 1, home, w.of(home), 8, old);
          swapping.wait();
          barrier(w.world);
          return old == 3 * rounds || old == 1 ? "" : fmt::format("swapped {}", old);
        })) == "");
}

TEST_CASE("a wrong key is refused, and costs nobody else anything", "[one_sided][threads]") {
  const auto* how = GENERATE("auto", "off");
  const bool shared = GENERATE(true, false);
  INFO(how << ", shared " << shared);
  CHECK(
      complaint(run_ranks(3, single_copy(how), [&](context& self) -> std::string {
        windows w(self, 256, shared);
        const int me = w.world.rank().value;
        const rank next{(me + 1) % 3};
        std::uint64_t word = 5;
        {
          const region brief = register_memory(w.world, &word, sizeof word);
          const remote_key all_keys[] = {brief.key()};
          w.world.send(all_keys[0], rank{(me + 2) % 3}, tag{1});
          remote_key theirs;
          w.world.recv(theirs, next, tag{1});
          std::uint64_t seen = 0;
          get(w.world, &seen, sizeof seen, next, theirs);
          if (seen != 5) return "a good key was refused";
          barrier(w.world);
          w.keys.push_back(theirs);
        }
        barrier(w.world);  // all brief regions are gone
        const remote_key revoked = w.keys.back();
        const remote_key of_another = w.of(rank{(me + 2) % 3});
        std::vector<std::byte> data(300, std::byte{0x77});
        std::uint64_t old = 0;
        for (const std::string& said :
             {refused(errc::access_denied, "put of 8 B at offset 0 of rank",
                      [&] { put(w.world, data.data(), 8, next, {}); }),
              refused(errc::access_denied, "no longer", [&] { put(w.world, data.data(), 8, next, revoked); }),
              refused(errc::access_denied, "no longer", [&] { get(w.world, data.data(), 8, next, revoked); }),
              refused(errc::access_denied, "no longer", [&] { fetch_add(w.world, 1, next, revoked); }),
              refused(errc::access_denied, "no longer",
                      [&] { put_with_flag(w.world, data.data(), 8, next, revoked, 0, 1); }),
              refused(errc::access_denied, "is not", [&] { put(w.world, data.data(), 8, next, of_another); }),
              refused(errc::access_denied, "is not",
                      [&] { iput(w.world, data.data(), 8, next, of_another).wait(); }),
              refused(errc::access_denied, "has 256 B", [&] { put(w.world, data, next, w.of(next)); }),
              refused(errc::access_denied, "has 256 B",
                      [&] { get(w.world, data.data(), 8, next, w.of(next), 249); }),
              refused(errc::access_denied, "has 256 B",
                      [&] { iget(w.world, data.data(), 1, next, w.of(next), ~0ULL).wait(); }),
              refused(errc::invalid_argument, "multiple of 8",
                      [&] { fetch_add(w.world, 1, next, w.of(next), 4); }),
              refused(errc::invalid_argument, "multiple of 8",
                      [&] { ifetch_add(w.world, 1, next, w.of(next), 4, old).wait(); }),
              refused(errc::invalid_argument, "rank 3 is not in",
                      [&] { put(w.world, data.data(), 8, rank{3}, w.of(next)); }),
              refused(errc::invalid_argument, "null pointer",
                      [&] { put(w.world, nullptr, 8, next, w.of(next)); })})
          if (!said.empty()) return said;
        put(w.world, data.data(), 256, next, w.of(next));  // to the last byte
        flush_all(w.world);
        barrier(w.world);
        for (const std::byte b : w.memory)
          if (b != std::byte{0x77}) return "the good put did not arrive";
        if (test_flag(w.world, rank{(me + 2) % 3})) return "the word of a refused put came";
        return counter(self, "malformed") == 0 && word == 5 ? "" : "somebody suffered";
      })) == "");
}

TEST_CASE("many regions, more than the fabric takes, and none at all", "[one_sided][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          std::vector<std::uint64_t> words(3000);
          std::iota(words.begin(), words.end(), 0);
          std::vector<region> regions;
          std::vector<remote_key> keys(words.size());
          for (std::uint64_t& w : words) regions.push_back(register_memory(world, &w, sizeof w));
          for (const region& r : regions) world.send(r.key(), other);
          for (remote_key& k : keys) world.recv(k, other);
          for (std::size_t i = 0; i < words.size(); i += 71) {
            std::uint64_t got = 0;
            get(world, &got, sizeof got, other, keys[i]);
            if (got != i) return fmt::format("region {}: {}", i, got);
          }
          barrier(world);
          const region nothing;
          if (nothing || nothing.key().size() != 0) return "an empty region has something";
          return {};
        })) == "");
}

TEST_CASE("memory of the node: shared while there is room, ordinary beyond", "[one_sided][memory][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          std::pmr::memory_resource& pool = memory(self);
          if (!pool.is_equal(memory(self))) return "two resources";
          transport::routed_fabric& fabric = self.state().fabric();
          void* small = pool.allocate(1, 1);
          void* page = pool.allocate(100, 4096);
          void* odd = pool.allocate(100, 1 << 16);  // more than the segment aligns to
          void* huge = pool.allocate(fabric.shared_room() + 1, 64);
          if (fabric.shared_offset(small) == 0 || fabric.shared_offset(page) == 0)
            return "not in the segment";
          if (reinterpret_cast<std::uintptr_t>(page) % 4096 != 0 ||
              reinterpret_cast<std::uintptr_t>(odd) % (1 << 16) != 0)
            return "not aligned";
          if (fabric.shared_offset(odd) != 0 || fabric.shared_offset(huge) != 0) return "in the segment?";
          const std::uint64_t room = fabric.shared_room();
          pool.deallocate(small, 1, 1);
          pool.deallocate(page, 100, 4096);
          pool.deallocate(odd, 100, 1 << 16);
          pool.deallocate(huge, fabric.shared_room() + 1, 64);
          if (fabric.shared_room() != room + 64 + 4096) return "not given back";
          std::pmr::vector<int> v(shared_allocator<int>{&pool});
          for (int i = 0; i < 100000; ++i) v.push_back(i);
          return v[99999] == 99999 ? "" : "lost";
        })) == "");
}

TEST_CASE("who waits for a rank that is gone is told so", "[one_sided][threads]") {
  runtime::in_process_job job(2, true);
  std::vector<std::string> said;
  std::thread survivor([&] {
    context self(runtime::context_state::join(job.member(0), single_copy("off")));
    remote_key key;
    self.world().recv(key, rank{1});
    std::uint64_t word = 0;
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { wait_flag(self.world(), rank{1}); }, [&] { put(self.world(), &word, 8, rank{1}, key); },
             [&] { flush(self.world(), rank{1}); }})
      try {
        call();
        said.emplace_back("nothing");
      } catch (const error& e) {
        said.emplace_back(e.what());
      }
  });
  std::thread victim([&] {
    context self(runtime::context_state::join(job.member(1), single_copy("off")));
    std::uint64_t word = 0;
    const region mine = register_memory(self.world(), &word, 8);
    self.world().send(mine.key(), rank{0});
  });
  victim.join();
  tests::announce(job, 1, base::rank_state::failed, 9);
  survivor.join();
  REQUIRE(said.size() == 3);
  CHECK(said[0] == "rank 0: wait_flag from rank 1: rank 1 was killed by signal 9");
  CHECK(said[1] == "rank 0: put of 8 B at offset 0 of rank 1: rank 1 was killed by signal 9");
  CHECK(said[2] == "rank 0: flush: rank 1 was killed by signal 9");
}
