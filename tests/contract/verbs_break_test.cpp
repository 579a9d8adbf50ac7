// Connections that break and are made anew, over a real device: the port that both endpoints use goes down under traffic and
// comes back. What was under way when it did is known exactly, since both lie in this process.
#include "verbs_pair.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace verbena::contract;
using verbena::errc;
namespace base = verbena::base;

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
