// Connections that break, in the middle of anything: nothing is lost, nothing comes twice, and an end has its reason.
#include "tcp_pair.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>

using namespace verbena;
using namespace verbena::tests;
using transport::sim::random_source;

namespace {

std::size_t some_size(random_source& random) {
  switch (random.below(8)) {
    case 0:
      return random.below(tcp::payload_bytes + 1);
    case 1:
      return random.below(5000);
    default:
      return random.below(100);
  }
}

/// Sends in both directions, cutting now and then by `trouble()`, until so many went each way.
template <class Trouble>
void exchange(tcp_pair& pair, random_source& random, std::uint64_t packets, Trouble&& trouble) {
  const base::nanoseconds end = base::steady_now() + 60 * base::second;
  while (!(pair.all_arrived() && pair.sent[0] >= packets && pair.sent[1] >= packets)) {
    REQUIRE(base::steady_now() < end);
    for (std::uint32_t from = 0; from < 2; ++from)
      if (pair.sent[from] < packets && random.below(2) == 0) pair.post(from, some_size(random));
    trouble();
    const std::uint32_t who = random.below(3);  // now and then one of them is busy with something else
    if (who < 2) pair.fabrics[who]->poll(pair.now(), pair.seen[who]);
  }
  for (const counting_sink& s : pair.seen) {
    CHECK(s.wrong == 0);
    CHECK(s.downs.empty());
  }
}

}  // namespace

TEST_CASE("a connection that is cut in the middle loses nothing and doubles nothing", "[tcp][faults]") {
  std::uint64_t breaks = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    tcp_pair pair;
    pair.attach();
    exchange(pair, random, 300, [&] {
      if (!random.chance(8000)) return;
      const std::uint32_t who = random.below(2);
      pair.end(who).cut(peer{1 - who}, random.below(2) == 0);
    });
    breaks += pair.end(0).breaks(peer{1});
  }
  CHECK(breaks > 100);
}

TEST_CASE("what is under way when a connection is cut comes over the next one", "[tcp][faults]") {
  std::uint64_t breaks = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    tcp_pair pair;
    proxy to_zero(pair.port(0)), to_one(pair.port(1));
    pair.attach(to_zero.port(), to_one.port());
    exchange(pair, random, 200, [&] {
      to_zero.pump(random, 10'000);
      to_one.pump(random, 10'000);
    });
    CHECK(to_zero.passed + to_one.passed > 100'000);
    breaks += pair.end(0).breaks(peer{1});
  }
  CHECK(breaks > 30);
}

TEST_CASE("both sides call at once, and one connection stands", "[tcp]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    tcp_pair pair;
    pair.attach();
    for (std::uint32_t i = 0; i < 2; ++i) pair.fabrics[i]->connect(peer{1 - i});
    exchange(pair, random, 5, [] {});
    CHECK(pair.end(0).breaks(peer{1}) == 0);
    CHECK(pair.end(1).breaks(peer{0}) == 0);
    CHECK(pair.until([&] { return pair.end(0).unproven() + pair.end(1).unproven() == 0; }));
  }
}

TEST_CASE("a link that stays down is given up in its time, and what had come is delivered before",
          "[tcp][faults]") {
  tcp_pair pair(on_loopback(base::second));
  proxy to_zero(pair.port(0)), to_one(pair.port(1));
  pair.attach(to_zero.port(), to_one.port());
  random_source random(3);
  exchange(pair, random, 20, [&] {
    to_zero.pump(random, 0);
    to_one.pump(random, 0);
  });
  const base::nanoseconds cut = base::steady_now();
  to_zero.refuses = to_one.refuses = true;
  CHECK(pair.until([&] {
    to_zero.pump(random, 0);
    to_one.pump(random, 0);
    return !pair.seen[0].downs.empty() && !pair.seen[1].downs.empty();
  }));
  const base::nanoseconds took = base::steady_now() - cut;
  CHECK(took > 900 * base::millisecond);
  CHECK(took < 4 * base::second);
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(pair.seen[i].downs == std::vector{errc::link_down});
    CHECK(pair.fabrics[i]->last_words(peer{1 - i}).find("VERBENA_LINK_TIMEOUT_S") != std::string::npos);
    CHECK(send_numbered(*pair.fabrics[i], peer{1 - i}, 0, 8) == post_result::down);
  }
}

TEST_CASE("a silent listener at another address keeps nobody from being found, then or later", "[tcp][faults]") {
  tcp_pair pair(on_loopback(5 * base::second));
  proxy to_zero(pair.port(0)), to_one(pair.port(1));
  tarpit beside_zero(to_zero.port()), beside_one(to_one.port());
  pair.also = {tarpit::where()};
  pair.attach(to_zero.port(), to_one.port());
  random_source random(4);
  const auto pump = [&] {
    to_zero.pump(random, 0);
    to_one.pump(random, 0);
  };
  exchange(pair, random, 20, pump);
  to_zero.refuses = to_one.refuses = true;
  for (const base::nanoseconds end = base::steady_now() + base::second; base::steady_now() < end; pair.poll()) pump();
  to_zero.refuses = to_one.refuses = false;
  exchange(pair, random, 40, pump);
}

TEST_CASE("a silent listener at another address does not stand for a peer that is gone", "[tcp][faults]") {
  tcp_pair pair(on_loopback(base::second));
  tarpit beside_zero(pair.port(0)), beside_one(pair.port(1));
  pair.also = {tarpit::where()};
  pair.attach();
  REQUIRE(pair.connect());
  const base::nanoseconds gone = base::steady_now();
  pair.fabrics[1]->inside()->die();
  pair.fabrics[1].reset();
  CHECK(pair.until([&] { return !pair.seen[0].downs.empty(); }));
  CHECK(pair.seen[0].downs == std::vector{errc::link_down});
  CHECK(base::steady_now() - gone < 4 * base::second);
}

TEST_CASE("who does not poll is waited for, however long", "[tcp]") {
  tcp_pair pair(on_loopback(base::second));
  pair.attach();
  for (const base::nanoseconds end = base::steady_now() + 3 * base::second; base::steady_now() < end;
       ::usleep(1000)) {
    if (pair.sent[0] == 0) pair.post(0, 8);
    pair.fabrics[0]->poll(pair.now(), pair.seen[0]);
  }
  CHECK(pair.seen[0].downs.empty());
  CHECK(pair.connect());
}

TEST_CASE("who leaves in good order has delivered all, and is told apart from a break", "[tcp]") {
  for (const std::size_t size : {std::size_t{8}, tcp::payload_bytes}) {
    tcp_pair pair;
    pair.attach();
    REQUIRE(pair.connect());
    for (int i = 0; i < 6; ++i) REQUIRE(pair.until([&] { return pair.post(1, size); }));
    pair.fabrics[1].reset();
    CHECK(pair.until([&] { return !pair.seen[0].downs.empty(); }));
    CHECK(pair.seen[0].due == 6);
    CHECK(pair.seen[0].wrong == 0);
    CHECK(pair.seen[0].downs == std::vector{errc::peer_left});
    CHECK(pair.end(0).breaks(peer{1}) == 0);
  }
}

TEST_CASE("all that a dead peer had sent is delivered before its death is told", "[tcp][faults]") {
  for (const std::size_t size : {std::size_t{8}, std::size_t{30'000}}) {
    testing::shm_node node(2);
    tcp_pair pair(on_loopback(), &node.page);
    pair.attach();
    REQUIRE(pair.connect());
    for (int i = 0; i < 6; ++i) REQUIRE(pair.until([&] { return pair.post(1, size); }));
    REQUIRE(pair.until([&] { return pair.seen[0].due >= 3; }));
    for (int i = 0; i < 3; ++i) REQUIRE(pair.post(1, size));  // and of these nothing was read yet
    pair.end(1).die();
    node.page.announce(1, base::rank_state::failed, 9);
    CHECK(pair.until([&] { return !pair.seen[0].downs.empty(); }));
    CHECK(pair.seen[0].due == 9);
    CHECK(pair.seen[0].wrong == 0);
    CHECK(pair.seen[0].downs == std::vector{errc::peer_failed});
  }
}

TEST_CASE("a peer that reads nothing is sent only so much", "[tcp]") {
  tcp_pair pair;
  pair.attach();
  REQUIRE(pair.connect());
  std::uint64_t taken = 0;
  int refused = 0;
  while (refused < 100 && taken < 10'000) {
    if (pair.post(0, tcp::payload_bytes))
      ++taken;
    else
      ++refused;
    pair.fabrics[0]->poll(pair.now(), pair.seen[0]);
  }
  CHECK(refused == 100);
  CHECK(taken < 2 * on_loopback().ring_bytes / tcp::payload_bytes);
  CHECK(pair.until([&] { return pair.all_arrived(); }));
  CHECK(pair.seen[1].wrong == 0);
}

TEST_CASE("whoever sleeps is woken by callers and by what arrives", "[tcp][threads]") {
  std::atomic<int> rings{0};
  tcp::options how = on_loopback();
  how.wake = [&] { ++rings; };
  tcp_pair pair(how);
  pair.attach();
  const auto sleeps = [&](std::uint32_t who) {
    for (int i = 0; i < 1000; ++i) {
      if (pair.fabrics[who]->arm()) return true;
      pair.fabrics[who]->poll(pair.now(), pair.seen[who]);
    }
    return false;
  };
  for (int lap = 0; lap < 5; ++lap) {
    pair.until([] { return false; }, 20 * base::millisecond);
    REQUIRE(sleeps(1));
    ::usleep(20'000);
    const int before = rings;
    bool posted = false;
    for (int i = 0; i < 5000 && rings == before; ++i) {  // the first time a call is what wakes it
      posted = posted || pair.post(0, 8);
      pair.fabrics[0]->poll(pair.now(), pair.seen[0]);
      ::usleep(1000);
    }
    REQUIRE(rings > before);
    pair.fabrics[1]->disarm();
    REQUIRE(pair.until([&] {
      posted = posted || pair.post(0, 8);
      return posted && pair.all_arrived();
    }));
  }
}
