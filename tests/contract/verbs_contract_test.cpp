// The contract over a real device; needs one (a guest with Soft-RoCE has it). One test case a check, so that a report names it.
#include "suite.hpp"
#include "verbs_set.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace verbena::contract;

namespace {

/// What is about bulk_method::together, which this fabric has not.
bool shares_only(std::string_view name) {
  return name.find("offer") != name.npos || name.find("ticket") != name.npos ||
         name.find("sharing") != name.npos;
}

}  // namespace

TEST_CASE("a device is found and said to be usable", "[verbs]") {
  verbs_set set(2);
  const std::string words = set.fabric(0).explain(verbena::transport::peer{1});
  INFO(words);
  CHECK(words.find("port 1") != std::string::npos);
  CHECK(words.find("RoCE v2, ::ffff:10.0.0.1") != std::string::npos);
}

TEST_CASE("verbs keep the contract", "[verbs]") {
  for (const check& c : all_checks<verbs_set>()) {
    DYNAMIC_SECTION(c.name) {
      const report found = c.run();
      INFO(found.text());
      CHECK(found.clean());
      CHECK((found.expectations() != 0 || shares_only(c.name)));
    }
  }
}

namespace {

/// Polls all endpoints until the condition holds or so much time has passed.
template <class Condition>
bool within(verbena::base::nanoseconds limit, bench<verbs_set>& b, Condition&& holds) {
  for (const auto end = verbena::base::steady_now() + limit; !holds();) {
    if (verbena::base::steady_now() > end) return false;
    b.round();
  }
  return true;
}

}  // namespace

TEST_CASE("a peer that answers no more is found dead without anybody's word", "[verbs][faults]") {
  report found;
  bench<verbs_set> b(3, found);
  b.send(0, 1, 0, 16);
  b.send(1, 0, 0, 16);
  b.settle();
  b.at(1).die();
  b.at(1).die();                                                            // the second time nothing happens
  CHECK(b.try_send(0, 1, 1, 16) == verbena::transport::post_result::done);  // nobody knows yet
  const auto told = [&](std::uint32_t who) { return downs_of(b.seen(who), 1) == 1; };
  CHECK(within(20 * verbena::base::second, b, [&] { return told(0); }));
  CHECK(b.seen(0).events.back().why == verbena::errc::peer_failed);
  CHECK_THAT(b.at(0).last_words(verbena::transport::peer{1}),
             Catch::Contains("rxe0 port 1") && Catch::Contains("to rank 1, packets: RETRY_EXC_ERR") &&
                 Catch::Contains("is that process alive") && Catch::Contains("The port here is ACTIVE"));
  b.send(0, 2, 0, 16);
  b.until([&] { return b.seen(2).packets() == 1; }, "the living go on");
  CHECK(found.text() == "");
}

TEST_CASE("what is behind a refused access is carried out, and nobody else notices", "[verbs][faults]") {
  report found;
  bench<verbs_set> b(3, found);
  auto source = b.make_memory(4096), target = b.make_memory(4096), back = b.make_memory(4096),
       other = b.make_memory(4096);
  const auto local = b.registered(0, source), remote = b.registered(1, target);
  const auto theirs = b.registered(1, other), ours = b.registered(0, back);
  verbena::transport::remote_key gone;
  {
    const auto revoked = b.registered(1, b.make_memory(4096));
    gone = revoked.key();
  }
  fill(source, 1);
  fill(other, 2);
  for (int lap = 0; lap < 5; ++lap) {
    CAPTURE(lap);
    fill(target, 3);
    fill(back, 4);
    const std::size_t flags = b.seen(1).count(event::kind::flag), packets = b.seen(0).packets();
    tracked &bad = b.make_operation(0), &put = b.make_operation(0), &flagged = b.make_operation(0),
            &reverse = b.make_operation(1);
    using verbena::transport::operation;
    const peer zero{0}, one{1};
    b.post(bad, [&](operation& o) { return b.at(0).put(one, b.whole(source), gone, 0, o); });
    b.post(put, [&](operation& o) { return b.at(0).put(one, {source.data(), 2048}, remote.key(), 0, o); });
    b.post(flagged, [&](operation& o) {
      return b.at(0).put_with_flag(one, {source.data() + 2048, 2048}, remote.key(), 2048, 5, o);
    });
    b.post(reverse, [&](operation& o) { return b.at(1).put(zero, b.whole(other), ours.key(), 0, o); });
    post_result sent = post_result::again;
    CHECK(within(10 * verbena::base::second, b, [&] {
      return (sent = b.try_send(1, 0, static_cast<std::uint64_t>(lap), 100)) != post_result::again;
    }));
    CHECK(sent == post_result::done);
    const auto all_ended = [&] { return bad.ends + put.ends + flagged.ends + reverse.ends == 4; };
    const auto all_arrived = [&] {
      return b.seen(1).count(event::kind::flag) == flags + 1 && b.seen(0).packets() == packets + 1;
    };
    CHECK(within(10 * verbena::base::second, b, all_ended));
    CHECK(within(10 * verbena::base::second, b, all_arrived));
    CHECK(bad.op.result.error == verbena::errc::access_denied);
    CHECK(put.op.result.error == verbena::errc::success);
    CHECK(flagged.op.result.error == verbena::errc::success);
    CHECK(reverse.op.result.error == verbena::errc::success);
    CHECK(matches(target, 1));
    CHECK(matches(back, 2));
  }
  b.settle();
  CHECK(b.seen(1).count(event::kind::flag) == 5);
  CHECK(found.text() == "");
}

TEST_CASE("a put larger than any message of the device moves in pieces", "[verbs]") {
  report found;
  bench<verbs_set> b(2, found);
  constexpr std::size_t size = (17U << 20) + 5;  // of Soft-RoCE, which takes 8 MiB
  auto source = b.make_memory(size), target = b.make_memory(size);
  const auto remote = b.registered(1, target);  // the source is registered by the access itself
  fill(source, 9);
  tracked& put = b.make_operation(0);
  b.post(put, [&](verbena::transport::operation& o) {
    return b.at(0).put(peer{1}, b.whole(source), remote.key(), 0, o);
  });
  CHECK(within(60 * verbena::base::second, b, [&] { return put.ends == 1; }));
  CHECK(put.op.result.error == verbena::errc::success);
  CHECK(matches(target, 9));
  CHECK(found.text() == "");
}

TEST_CASE("packets wait for a put, but not for one that asks for no order", "[verbs]") {
  report found;
  bench<verbs_set> b(2, found);
  auto source = b.make_memory(1 << 20), target = b.make_memory(1 << 20);
  const auto remote = b.registered(1, target);
  using verbena::transport::operation;
  for (std::uint64_t lap = 0; lap < 3; ++lap) {
    CAPTURE(lap);
    tracked &ordered = b.make_operation(0), &apart = b.make_operation(0);
    fill(source, lap);
    b.post(ordered, [&](operation& o) { return b.at(0).put(peer{1}, b.whole(source), remote.key(), 0, o); });
    CHECK(b.try_send(0, 1, 2 * lap, 16) == post_result::again);
    b.send(0, 1, 2 * lap, 16);
    CHECK(ordered.ends == 1);
    CHECK(matches(target, lap));
    fill(source, 10 + lap);
    b.post(apart,
           [&](operation& o) { return b.at(0).put_apart(peer{1}, b.whole(source), remote.key(), 0, o); });
    CHECK(b.try_send(0, 1, 2 * lap + 1, 16) == post_result::done);
    CHECK(within(10 * verbena::base::second, b, [&] { return apart.ends == 1; }));
    CHECK(matches(target, 10 + lap));
  }
  b.settle();
  CHECK(b.seen(1).packets() == 6);
  CHECK(found.text() == "");
}

TEST_CASE("a registration stays until the last access that uses it has ended", "[verbs]") {
  report found;
  bench<verbs_set> b(2, found);
  auto source = b.make_memory(1 << 20), target = b.make_memory(1 << 20);
  const auto remote = b.registered(1, target);
  fill(source, 3);
  tracked& put = b.make_operation(0);
  {
    const auto gone = b.registered(0, source);
    b.post(put, [&](verbena::transport::operation& o) {
      return b.at(0).put(peer{1}, b.whole(source), remote.key(), 0, o);
    });
  }
  CHECK(within(10 * verbena::base::second, b, [&] { return put.ends == 1; }));
  CHECK(put.op.result.error == verbena::errc::success);
  CHECK(matches(target, 3));
  CHECK(found.text() == "");
}

TEST_CASE("whoever sleeps is woken by what arrives", "[verbs]") {
  using namespace verbena;
  testing::shm_node node(2);
  std::atomic<int> rings{0};
  transport::verbs::verbs_fabric one(peer{0}, 2, &node.page, {});
  transport::verbs::verbs_fabric two(peer{1}, 2, &node.page,
                                     {.device = {}, .any_atomics = false, .wake = [&] { ++rings; }});
  REQUIRE(one.attach(peer{1}, two.address()));
  REQUIRE(two.attach(peer{0}, one.address()));
  recorder seen;
  seen.polling = true;
  for (int lap = 1; lap <= 5; ++lap) {
    const int before = rings;
    REQUIRE(two.arm());
    ::usleep(20'000);
    CHECK(rings == before);  // nothing came
    CHECK(one.send(peer{1}, envelope{}, 8, [](std::byte*) {}) == post_result::done);
    for (int i = 0; i < 2000 && rings == before; ++i) ::usleep(1000);
    CHECK(rings == before + 1);
    CHECK_FALSE(two.arm());
    two.disarm();
    two.poll(base::steady_now(), seen);
    CHECK(seen.packets() == static_cast<std::size_t>(lap));
    for (int quiet = 0; quiet < 10;) quiet = two.poll(base::steady_now(), seen) == 0 ? quiet + 1 : 0;
  }
}

// The last one: for a while after it the kernel tells of addresses that come back, which wakes sleepers.
TEST_CASE("a port that is down too long ends all links, and says so", "[verbs][faults]") {
  using namespace verbena;
  transport::verbs::options how;
  how.link_timeout = base::second;
  transport::verbs::verbs_fabric one(peer{0}, 2, nullptr, how), two(peer{1}, 2, nullptr, how);
  REQUIRE(one.attach(peer{1}, two.address()));
  REQUIRE(two.attach(peer{0}, one.address()));
  recorder seen;
  seen.polling = true;
  const auto poll_for = [&](base::nanoseconds limit) {
    for (const auto end = base::steady_now() + limit; base::steady_now() < end && seen.events.empty();
         ::usleep(100))
      one.poll(base::steady_now(), seen);
  };
  REQUIRE(std::system("ip link set eth0 down; sleep 0.3; ip link set eth0 up") == 0);
  poll_for(2 * base::second);
  CHECK(seen.events.empty());  // it came back in time
  REQUIRE(std::system("ip link set eth0 down") == 0);
  const auto start = base::steady_now();
  poll_for(10 * base::second);
  const auto took = base::steady_now() - start;
  REQUIRE(std::system("ip link set eth0 up") == 0);
  for (int i = 0; i < 100 && std::system("grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state") != 0; ++i)
    ::usleep(100'000);
  REQUIRE(seen.events.size() == 1);
  CHECK(took >= base::second);
  CHECK(took < 3 * base::second);
  CHECK(seen.events[0].what == event::kind::down);
  CHECK(seen.events[0].why == errc::link_down);
  CHECK_THAT(one.last_words(peer{1}), Catch::Contains("rxe0 port 1") && Catch::Contains("no link for 1 s") &&
                                          Catch::Contains("PORT_ERR (the port went down)"));
}
