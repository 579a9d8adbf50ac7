// Two endpoints, and several, over a real device whose port goes down and comes back; for tests of links that break. It must
// not know what is expected of them.
#pragma once

#include "bench.hpp"
#include "verbs_set.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace verbena::contract {

inline void port_goes(const char* up_or_down) {
  REQUIRE(std::system(fmt::format("ip link set eth0 {}", up_or_down).c_str()) == 0);
}

/// However a test ends, the next one finds the port up.
struct repair {
  ~repair() {
    static_cast<void>(
        std::system("ip link set eth0 up; for i in $(seq 50); do grep -q ACTIVE "
                    "/sys/class/infiniband/rxe0/ports/1/state && break; sleep 0.1; done"));
  }
};

/// Two endpoints; 0 reaches into 1's memory.
struct pair {
  static constexpr std::size_t size = 300'000;

  template <class Condition>
  bool within(base::nanoseconds limit, Condition&& holds) {
    for (const auto end = base::steady_now() + limit; !holds();) {
      if (base::steady_now() > end) return false;
      both.round();
    }
    return true;
  }
  /// All must be taken at once.
  void send(std::uint32_t from, int packets) {
    for (int i = 0; i < packets; ++i, ++sent[from])
      CHECK(both.try_send(from, 1 - from, sent[from], sent[from] * 997 % 8193) == post_result::done);
  }
  tracked& next() { return *ops.emplace_back(&both.make_operation(0)); }
  tracked& put() {
    tracked& t = next();
    CHECK(both.at(0).put(one, bench<verbs_set>::whole(source), target_key.key(), 0, t.op) ==
          post_result::pending);
    return t;
  }
  tracked& get() {
    tracked& t = next();
    CHECK(both.at(0).get(one, bench<verbs_set>::whole(back), target_key.key(), 0, t.op) ==
          post_result::pending);
    return t;
  }
  tracked& flag() {
    tracked& t = next();
    CHECK(both.at(0).put_with_flag(one, {source.data(), 5000}, target_key.key(), 0, flags++, t.op) ==
          post_result::pending);
    return t;
  }
  tracked& add() {
    tracked& t = next();
    CHECK(both.at(0).fetch_add(one, {reinterpret_cast<std::byte*>(&old), sizeof old}, word_key.key(), 0, 1,
                               t.op) == post_result::pending);
    return t;
  }
  bool is_broken(std::uint32_t of) {
    return both.at(of).explain(of == 0 ? one : zero).find("is being made anew") != std::string::npos;
  }
  bool is_over() {
    return std::all_of(ops.begin(), ops.end(), [](const tracked* t) { return t->ends == 1; }) &&
           both.seen(1).packets() == sent[0] && both.seen(0).packets() == sent[1] &&
           both.seen(1).count(event::kind::flag) == flags;
  }
  /// Numbered from 0, in order, every byte right; and flags as well.
  bool is_as_sent(std::uint32_t seen_by) {
    std::uint64_t number = 0, flag = 0;
    for (const event& e : both.seen(seen_by).events) {
      if (e.what == event::kind::flag && e.word != flag++) return false;
      if (e.what != event::kind::packet) continue;
      if (e.head.first != number || e.bytes.size() != number * 997 % 8193 || !matches(e.bytes, number))
        return false;
      ++number;
    }
    return true;
  }

  const repair afterwards{};
  const peer zero{0}, one{1};
  report found;
  bench<verbs_set> both{2, found};
  std::span<std::byte> source = both.make_memory(size), target = both.make_memory(size),
                       back = both.make_memory(size);
  alignas(8) std::uint64_t word = 0;
  std::uint64_t old = 0;
  verbs_set::fabric_type::region target_key = both.registered(1, target);
  verbs_set::fabric_type::region word_key =
      both.registered(1, {reinterpret_cast<std::byte*>(&word), sizeof word});
  std::array<std::uint64_t, 2> sent{};
  std::uint64_t flags = 0;
  std::vector<tracked*> ops;
};

/// Endpoints that know of deaths only by their connections, each with its own recorder.
struct strangers {
  strangers(std::uint32_t size, transport::verbs::options how)
      : seen(size), sent(size, std::vector<std::uint64_t>(size)) {
    for (std::uint32_t i = 0; i < size; ++i)
      all.push_back(std::make_unique<verbs_set::fabric_type>(peer{i}, size, nullptr, how));
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j)
        if (i != j) REQUIRE(all[i]->attach(peer{j}, all[j]->address()));
    for (recorder& r : seen) r.polling = true;
  }
  void poll(std::uint32_t i) { all[i]->poll(base::steady_now(), seen[i]); }
  /// As many empty packets as are taken.
  void flood(std::uint32_t from, std::uint32_t to) {
    while (all[from]->send(peer{to}, envelope{sent[from][to], 0}, 0, [](std::byte*) {}) == post_result::done)
      ++sent[from][to];
  }

  const repair afterwards{};
  std::vector<recorder> seen;
  std::vector<std::unique_ptr<verbs_set::fabric_type>> all;
  std::vector<std::vector<std::uint64_t>> sent;
};

}  // namespace verbena::contract
