// Connections that break and are made anew, over a real device: the port that both endpoints use goes down under traffic and
// comes back. What was under way when it did is known exactly, since both lie in this process.
#include "bench.hpp"
#include "verbs_set.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace verbena::contract;
using verbena::errc;
namespace base = verbena::base;

namespace {

void port_goes(const char* up_or_down) {
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

}  // namespace

TEST_CASE("a port that goes down and comes back costs no packet, put, get or flag", "[verbs][faults]") {
  const repair afterwards{};
  pair p;
  p.send(0, 1);
  p.send(1, 1);
  p.flag();  // makes the queue pair for accesses
  REQUIRE(p.within(10 * base::second, [&] { return p.is_over(); }));
  std::uint64_t additions = 0;
  for (std::uint64_t lap = 0; lap < 2; ++lap) {
    CAPTURE(lap);
    p.ops.clear();
    fill(p.source, lap);
    fill(p.back, 99);
    // Carried out before the port goes down, and not heard of.
    p.send(0, 10);
    p.send(1, 10);
    std::vector<tracked*> early{&p.flag(), &p.flag()};
    tracked& early_addition = p.add();
    ::usleep(100'000);
    CHECK(p.word == ++additions);
    port_goes("down");
    // And what cannot be.
    p.send(1, 10);
    const std::vector<tracked*> late{&p.flag(), &p.put(), &p.get(), &p.flag()};
    tracked& late_addition = p.add();
    REQUIRE(p.within(5 * base::second, [&] { return p.is_broken(0) && p.is_broken(1); }));
    CHECK(p.both.try_send(0, 1, 0, 8) == post_result::again);
    CHECK(p.both.try_send(1, 0, 0, 8) == post_result::again);
    p.within(500 * base::millisecond, [] { return false; });
    CHECK_FALSE(p.is_over());
    CHECK(p.both.seen(0).count(event::kind::down) + p.both.seen(1).count(event::kind::down) == 0);
    port_goes("up");
    const auto since = base::steady_now();
    CHECK(p.within(9 * base::second, [&] { return p.is_over(); }));
    fmt::print("  made anew after {} ms\n", (base::steady_now() - since) / base::millisecond);
    for (const tracked* t : early) CHECK(t->op.result.error == errc::success);
    for (const tracked* t : late) CHECK(t->op.result.error == errc::success);
    CHECK(early_addition.op.result.error == errc::success);
    CHECK(late_addition.op.result.error == errc::outcome_unknown);
    CHECK(p.word == additions);  // it was not carried out, and it is not done again
    CHECK(p.is_as_sent(0));
    CHECK(p.is_as_sent(1));
    CHECK(matches(p.target, lap));
    CHECK(matches(p.back, lap));
    // And it is as good as new.
    p.add();
    p.send(0, 12);
    p.send(1, 12);
    CHECK(p.within(5 * base::second, [&] { return p.is_over(); }));
    CHECK(p.word == ++additions);
    CHECK(p.both.at(0).explain(p.one).find(fmt::format("made anew after {} breaks", lap + 1)) !=
          std::string::npos);
  }
  CHECK(p.found.text() == "");
}

TEST_CASE("what a flag tells of is not done again, although its answer was lost", "[verbs][faults]") {
  const repair afterwards{};
  pair p;
  p.flag();
  REQUIRE(p.within(10 * base::second, [&] { return p.is_over(); }));
  p.ops.clear();
  fill(p.source, 1);
  tracked& put = p.put();
  tracked& flag = p.flag();
  ::usleep(300'000);
  CHECK(matches(p.target, 1));
  // Endpoint 0 never hears that these two were carried out: it is told nothing before the other one has seen the flag, and
  // uses the memory for something else.
  const auto poll_only_one = [&] {
    for (int i = 0; i < 200; ++i) p.both.poll(1);
  };
  poll_only_one();
  CHECK(p.both.seen(1).count(event::kind::flag) == 2);
  fill(p.target, 7);
  port_goes("down");
  p.send(1, 1);
  REQUIRE(p.within(5 * base::second, [&] { return p.is_broken(1); }));
  port_goes("up");
  CHECK(p.within(9 * base::second, [&] { return p.is_over(); }));
  CHECK(put.op.result.error == errc::success);
  CHECK(flag.op.result.error == errc::success);
  CHECK(matches(p.target, 7));
  CHECK(p.is_as_sent(1));
}

namespace {

/// `notices`: it knows that the connection is broken, for it has sent something; else the first thing to be lost is its
/// goodbye.
void leave_without_a_port(bool notices) {
  using verbena::transport::verbs::verbs_fabric;
  verbena::transport::verbs::options how;
  const repair afterwards{};
  recorder seen;
  seen.polling = true;
  verbs_fabric stays(peer{0}, 2, nullptr, how);
  auto leaves = std::make_unique<verbs_fabric>(peer{1}, 2, nullptr, how);
  REQUIRE(stays.attach(peer{1}, leaves->address()));
  REQUIRE(leaves->attach(peer{0}, stays.address()));
  port_goes("down");
  const std::uint64_t packets = notices ? 10 : 0;
  for (std::uint64_t i = 0; i < packets; ++i)
    CHECK(leaves->send(peer{0}, envelope{i, 0}, 1000, [&](std::byte* room) {
      fill({room, 1000}, i);
    }) == post_result::done);
  recorder nothing;
  const auto is_broken = [&] {
    return leaves->explain(peer{0}).find("is being made anew") != std::string::npos;
  };
  for (int i = 0; notices && i < 20'000 && !is_broken(); ++i) {
    leaves->poll(base::steady_now(), nothing);
    ::usleep(100);
  }
  CHECK(is_broken() == notices);
  std::thread other([&] {
    ::usleep(300'000);
    if (std::system("ip link set eth0 up") != 0) return;
    for (const auto end = base::steady_now() + 15 * base::second;
         base::steady_now() < end && seen.count(event::kind::down) == 0;)
      if (stays.poll(base::steady_now(), seen) == 0) ::usleep(100);
  });
  leaves.reset();
  other.join();
  REQUIRE(seen.events.size() == packets + 1);
  for (std::uint64_t i = 0; i < packets; ++i) {
    CHECK(seen.events[i].head.first == i);
    CHECK(matches(seen.events[i].bytes, i));
  }
  CHECK(seen.events.back().what == event::kind::down);
  CHECK(seen.events.back().why == errc::peer_left);
}

}  // namespace

TEST_CASE("a rank that leaves while a connection is broken has sent everything", "[verbs][faults]") {
  leave_without_a_port(true);
}

TEST_CASE("a rank whose goodbye does not arrive stays until it does", "[verbs][faults]") {
  leave_without_a_port(false);
}

namespace {

using verbena::transport::verbs::verbs_fabric;

/// Endpoints that know of deaths only by their connections, each with its own recorder.
struct strangers {
  strangers(std::uint32_t size, verbena::transport::verbs::options how)
      : seen(size), sent(size, std::vector<std::uint64_t>(size)) {
    for (std::uint32_t i = 0; i < size; ++i)
      all.push_back(std::make_unique<verbs_fabric>(peer{i}, size, nullptr, how));
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
  std::vector<std::unique_ptr<verbs_fabric>> all;
  std::vector<std::vector<std::uint64_t>> sent;
};

}  // namespace

TEST_CASE("a rank that was busy does not take a healthy link for dead", "[verbs][faults]") {
  verbena::transport::verbs::options how;
  how.link_timeout = 4 * base::second;
  strangers s(4, how);
  for (std::uint32_t i = 0; i < 4; ++i) s.poll(i);
  // More has come than one look at the completions takes; behind it, the answer of rank 3, which says nothing.
  ::usleep(1'100'000);
  s.flood(1, 0);
  s.flood(2, 0);
  ::usleep(200'000);
  s.all[0]->arm();  // the next poll looks at everything
  s.poll(0);
  CHECK(s.seen[0].packets() == 64);
  ::usleep(3'100'000);  // computes
  s.all[0]->arm();
  s.poll(0);
  CHECK(s.seen[0].packets() == 128);
  for (const std::uint32_t other : {1U, 2U, 3U}) {
    CAPTURE(other);
    CHECK(s.all[0]->explain(peer{other}).find("anew") == std::string::npos);
  }
  for (int i = 0; i < 1000; ++i) s.poll(0);
  CHECK(s.seen[0].count(event::kind::down) == 0);
}

TEST_CASE("others' messages do not keep a rank from giving up a link in time", "[verbs][faults]") {
  verbena::transport::verbs::options how;
  how.link_timeout = 2500 * base::millisecond;
  strangers s(4, how);
  s.flood(0, 3);
  s.all[3]->die();
  s.flood(0, 3);
  const auto start = base::steady_now();
  std::uint64_t never_empty = 0, packets = 0;
  while (s.seen[0].count(event::kind::down) == 0 && base::steady_now() - start < 8 * base::second) {
    s.seen[0].events.clear();
    for (const std::uint32_t from : {1U, 2U}) {
      s.poll(from);
      s.flood(from, 0);
    }
    ::usleep(2000);
    s.poll(0);
    if (s.seen[0].packets() == 64) ++never_empty;
    packets += s.seen[0].packets();
  }
  fmt::print("  after {} ms, {} full looks, {} packets\n", (base::steady_now() - start) / base::millisecond,
             never_empty, packets);
  REQUIRE(s.seen[0].count(event::kind::down) == 1);
  CHECK(never_empty > 20);
  CHECK(base::steady_now() - start < 5 * base::second);
  CHECK(s.all[0]->last_words(peer{3}).find("No new connection within 2 s") != std::string::npos);
}
