// The cache of registrations against an oracle that has every byte: what is found is registered, what memory goes
// takes its registrations along, and the bounds hold at every step.
#include "transport/region_cache.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

using namespace verbena::transport;

namespace {

/// What a device would hold: registrations by identity, each a range, pinned until it is dropped.
struct device {
  struct pinned {
    memory_range where;
    bool gone = false;
  };
  std::vector<std::unique_ptr<pinned>> all;
  int dropped_twice = 0;

  void* pin(memory_range where) {
    all.push_back(std::make_unique<pinned>(pinned{where}));
    return all.back().get();
  }
  void drop(void* what) {
    auto& p = *static_cast<pinned*>(what);
    dropped_twice += p.gone ? 1 : 0;
    p.gone = true;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& p : all) sum += p->gone ? 0 : p->where.size();
    return sum;
  }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const auto& p) { return !p->gone; }));
  }
};

struct bed {
  explicit bed(region_cache::bounds most) : cache(most, [this](void* what) { hardware.drop(what); }) {}

  /// As a fabric does it; null: registered for this operation alone.
  region_entry* take(memory_range wanted) {
    if (region_entry* found = cache.use(wanted)) return found;
    const memory_range planned = cache.prepare(wanted);
    if (planned.empty()) return nullptr;
    REQUIRE(planned.covers(wanted));
    return cache.keep(planned, hardware.pin(planned));
  }

  device hardware;
  region_cache cache;
};

constexpr std::uintptr_t kib = 1024, mib = 1024 * kib, base_address = 64 * mib;

memory_range at(std::uintptr_t begin, std::uintptr_t size) {
  return {base_address + begin, base_address + begin + size};
}

}  // namespace

TEST_CASE("memory that nobody vouches for is not kept", "[region_cache]") {
  bed b({.bytes = mib, .entries = 8});
  CHECK(b.take(at(0, 100)) == nullptr);
  b.cache.vouch(at(0, 100));
  CHECK(b.take(at(50, 51)) == nullptr);  // a byte too far
  CHECK(b.cache.counts().misses == 2);
  CHECK(b.cache.counts().hits == 0);
}

TEST_CASE("the second use of a block finds the first one's registration", "[region_cache]") {
  bed b({.bytes = mib, .entries = 8});
  b.cache.vouch(at(0, 100 * kib));
  region_entry* const first = b.take(at(10, 20));
  REQUIRE(first != nullptr);
  b.cache.release(*first);
  region_entry* const second = b.take(at(90 * kib, 10 * kib));
  CHECK(second == first);
  CHECK(b.hardware.all.size() == 1);
  CHECK(b.cache.counts().hits == 1);
  CHECK(b.cache.counts().misses == 1);
  b.cache.forget(base_address);
  CHECK(b.hardware.count() == 1);  // in use
  CHECK(b.take(at(10, 20)) == nullptr);
  b.cache.release(*second);
  CHECK(b.hardware.count() == 0);
  CHECK(b.cache.bytes() == 0);
}

TEST_CASE("of a large block only what is near is registered, and neighbours become one", "[region_cache]") {
  bed b({.bytes = 1024 * mib, .entries = 8});
  b.cache.vouch(at(0, 512 * mib));
  region_entry* const first = b.take(at(10 * mib + 5, 100));
  CHECK(b.cache.bytes() == 64 * kib);
  b.cache.release(*first);
  region_entry* const wider = b.take(at(10 * mib + 10, 64 * kib));
  CHECK(b.cache.bytes() == 128 * kib);
  CHECK(b.hardware.count() == 1);
  b.cache.release(*wider);
  CHECK(b.take(at(10 * mib + 5, 100)) == wider);
  b.cache.release(*wider);
}

TEST_CASE("the least recently used goes first, and what is in use stays", "[region_cache]") {
  bed b({.bytes = 3 * kib, .entries = 8});
  for (std::uintptr_t i = 0; i < 5; ++i) b.cache.vouch(at(i * 4 * kib, kib));
  const auto block = [](std::uintptr_t i) { return at(i * 4 * kib, kib); };
  const auto touch = [&](std::uintptr_t i) { b.cache.release(*b.take(block(i))); };
  const auto kept = [&](std::uintptr_t i) {
    region_entry* const found = b.cache.find(block(i));
    if (found != nullptr) b.cache.release(*found);
    return found != nullptr;
  };
  touch(0);
  touch(1);
  touch(2);
  touch(0);
  touch(3);
  CHECK_FALSE(kept(1));
  CHECK(b.cache.counts().evictions == 1);
  region_entry* const held = b.take(block(2));
  region_entry* const other = b.take(block(0));
  touch(4);  // 3 is the only one that may go
  CHECK_FALSE(kept(3));
  region_entry* const third = b.take(block(4));
  CHECK(b.take(block(1)) == nullptr);  // all are in use
  CHECK_FALSE(b.cache.evict());
  for (region_entry* e : {held, other, third}) b.cache.release(*e);
  CHECK(b.cache.evict());
}

TEST_CASE("with no bytes nothing is kept, and nothing larger than the bound", "[region_cache]") {
  bed none({.bytes = 0, .entries = 8}), small({.bytes = kib, .entries = 8}),
      few({.bytes = mib, .entries = 0});
  for (bed* b : {&none, &small, &few}) {
    b->cache.vouch(at(0, 2 * kib));
    CHECK(b->take(at(0, 10)) == nullptr);
  }
}

TEST_CASE("random use against an oracle", "[region_cache]") {
  const unsigned seed = GENERATE(range(1u, 9u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto any = [&](std::uintptr_t below) { return std::uintptr_t{random()} % below; };
  const region_cache::bounds most{.bytes = seed % 2 == 0 ? 12 * mib : 700 * kib, .entries = 3 + seed};
  struct use {
    region_entry* entry;
    memory_range wanted;
  };
  std::vector<use> uses;
  std::set<std::uintptr_t> blocks;  // numbers of those vouched for
  constexpr std::uintptr_t slots = 12;
  const auto block = [](std::uintptr_t i) {
    return at(i * 16 * mib, i % 3 == 0 ? 9 * mib : (i + 1) * 40 * kib);
  };
  {
    bed b(most);
    std::uint64_t asked = 0;
    for (int step = 0; step < 20'000; ++step) {
      const std::uintptr_t i = any(slots);
      const memory_range all = block(i);
      switch (any(10)) {
        case 0:
          if (blocks.insert(i).second) b.cache.vouch(all);
          break;
        case 1: {
          blocks.erase(i);
          b.cache.forget(all.begin);
          // Nothing of it is pinned, unless somebody holds it.
          for (const auto& p : b.hardware.all)
            if (!p->gone && p->where.overlaps(all))
              CHECK(std::any_of(uses.begin(), uses.end(),
                                [&](const use& u) { return u.entry->what == p.get(); }));
          break;
        }
        case 2:
        case 3:
        case 4:
          if (!uses.empty()) {
            std::swap(uses[any(uses.size())], uses.back());
            b.cache.release(*uses.back().entry);
            uses.pop_back();
          }
          break;
        case 5:
          if (any(20) == 0) b.cache.evict();
          break;
        default: {
          const std::uintptr_t begin = all.begin + any(all.size());
          const memory_range wanted{begin,
                                    begin + 1 + any(std::min<std::uintptr_t>(all.end - begin, 200 * kib))};
          ++asked;
          region_entry* const found = b.take(wanted);
          if (found == nullptr) break;
          CHECK(blocks.count(i) == 1);
          CHECK(found->where.covers(wanted));
          CHECK(all.covers(found->where));
          uses.push_back({found, wanted});
        }
      }
      for (const use& u : uses) {
        const auto& p = *static_cast<device::pinned*>(u.entry->what);
        if (p.gone || !p.where.covers(u.wanted)) FAIL("what is in use is not registered any more");
      }
      if (b.cache.bytes() != b.hardware.bytes() || b.cache.entries() != b.hardware.count())
        FAIL("miscounted");
      if (b.cache.bytes() > most.bytes || b.cache.entries() > most.entries) FAIL("above the bound");
    }
    CHECK(b.cache.counts().hits + b.cache.counts().misses == asked);
    CHECK(b.cache.counts().hits > asked / 20);
    CHECK(b.cache.counts().evictions > 0);
    for (const use& u : uses) b.cache.release(*u.entry);
    while (b.cache.evict()) {
    }
    CHECK(b.hardware.count() == 0);
    CHECK(b.hardware.dropped_twice == 0);
  }
}

TEST_CASE("what is left at the end is dropped, in use or not", "[region_cache]") {
  device hardware;
  {
    region_cache cache({.bytes = mib, .entries = 8}, [&](void* what) { hardware.drop(what); });
    for (std::uintptr_t i = 0; i < 3; ++i) {
      cache.vouch(at(i * mib, kib));
      const memory_range planned = cache.prepare(at(i * mib, kib));
      region_entry* const made = cache.keep(planned, hardware.pin(planned));
      if (i == 0) cache.forget(base_address);
      if (i == 1) cache.release(*made);
    }
    CHECK(hardware.count() == 3);
  }
  CHECK(hardware.count() == 0);
  CHECK(hardware.dropped_twice == 0);
}
