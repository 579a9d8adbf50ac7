// Strangers, scanners, garbage, replays, and a peer that turns hostile once it has proven itself: they get nowhere, and cost
// nobody else anything.
#include "tcp_pair.hpp"
#include "transport/tcp/handshake.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace verbena;
using namespace verbena::tests;
using transport::sim::random_source;

namespace {

std::vector<std::byte> noise(random_source& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

/// The pair goes on as if nothing was.
void still_works(tcp_pair& pair) {
  const std::uint64_t breaks = pair.end(0).breaks(peer{1});
  for (int i = 0; i < 50; ++i)
    for (std::uint32_t from = 0; from < 2; ++from) REQUIRE(pair.until([&] { return pair.post(from, 100); }));
  CHECK(pair.until([&] { return pair.all_arrived(); }));
  for (const counting_sink& s : pair.seen) {
    CHECK(s.wrong == 0);
    CHECK(s.downs.empty());
  }
  CHECK(pair.end(0).breaks(peer{1}) == breaks);
}

/// The first message a caller says, as anybody can.
std::vector<std::byte> hello_of(std::uint32_t caller, std::uint32_t callee) {
  const tcp::identity somebody{tcp::make_secret(), "pair", caller, {}};
  const tcp::handshake talk(somebody, callee, {});
  return {talk.to_send().begin(), talk.to_send().end()};
}

}  // namespace

TEST_CASE("garbage, scanners and half a hello get nowhere", "[tcp][hostile]") {
  random_source random(9);
  tcp_pair pair;
  pair.attach();
  REQUIRE(pair.connect());
  const std::vector<std::byte> hello = hello_of(1, 0);
  for (int i = 0; i < 40; ++i) {
    stranger who(pair.port(0));
    switch (i % 4) {
      case 0:
        who.say(noise(random, 1 + random.below(200)));
        break;
      case 1:
        who.say(std::span(hello).first(random.below(56)));
        break;
      case 2:
        who.say(hello_of(random.below(8), random.below(8)));
        who.say(noise(random, 500));
        break;
      default:
        break;
    }
    if (i % 2 == 0) pair.until([] { return false; }, base::millisecond);
  }
  still_works(pair);
  pair.skipped += 6 * base::second;
  CHECK(pair.until([&] { return pair.end(0).unproven() == 0; }));
}

TEST_CASE(
    "a stranger is hung up on: at the first wrong byte, or after five seconds, whatever it says meanwhile",
    "[tcp][hostile]") {
  random_source random(10);
  tcp_pair pair;
  pair.attach();
  REQUIRE(pair.connect());
  stranger wrong(pair.port(0)), silent(pair.port(0)), slow(pair.port(0));
  wrong.say(noise(random, 56));
  CHECK(pair.until([&] { return wrong.closed(); }));
  const std::vector<std::byte> hello = hello_of(1, 0);
  for (std::size_t second = 0; second < 5; ++second) {
    slow.say(std::span(hello).subspan(second, 1));
    pair.skipped += 900 * base::millisecond;
    pair.until([] { return false; }, 5 * base::millisecond);
    CHECK_FALSE(slow.closed());
    CHECK_FALSE(silent.closed());
  }
  pair.skipped += 900 * base::millisecond;
  CHECK(pair.until([&] { return slow.closed() && silent.closed(); }));
  CHECK(pair.end(0).unproven() == 0);
  still_works(pair);
}

TEST_CASE("a crowd of half-open connections is bounded, and a peer is heard through it", "[tcp][hostile]") {
  tcp_pair pair;
  pair.attach();
  std::vector<std::unique_ptr<stranger>> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(std::make_unique<stranger>(pair.port(0)));
    if (i % 3 == 0) crowd.back()->say(hello_of(1, 0));
  }
  const base::nanoseconds start = base::steady_now();
  pair.fabrics[1]->connect(peer{0});
  CHECK(pair.until([&] { return pair.sent[1] != 0 || pair.post(1, 8); }));
  CHECK(pair.until([&] { return pair.all_arrived(); }));
  CHECK(base::steady_now() - start < 2 * base::second);
  CHECK(pair.end(0).unproven() <= tcp::most_callers + 1);
  crowd.clear();
  CHECK(pair.until([&] { return pair.end(0).unproven() == 0; }));
  still_works(pair);
}

TEST_CASE("another job's secret opens nothing, in neither direction", "[tcp][hostile]") {
  for (const std::uint32_t caller : {0U, 1U}) {
    tcp_pair pair(on_loopback(base::second));
    pair.fabrics[1]->trust(tcp::make_secret(), "pair");
    pair.attach();
    pair.fabrics[caller]->connect(peer{1 - caller});
    CHECK(pair.until([&] { return !pair.seen[caller].downs.empty(); }));
    CHECK(pair.seen[caller].downs == std::vector{errc::link_down});
    CHECK(pair.seen[1 - caller].due == 0);
    CHECK_FALSE(pair.fabrics[1 - caller]->settled(peer{caller}));
  }
}

TEST_CASE("what a peer said once is nothing when it is said again", "[tcp][hostile]") {
  random_source random(11);
  tcp_pair pair;
  proxy to_one(pair.port(1));
  pair.attach(0, to_one.port());
  pair.fabrics[0]->connect(peer{1});
  REQUIRE(pair.until([&] {
    to_one.pump(random, 0);
    return pair.sent[0] >= 3 || (pair.post(0, 50), false);
  }));
  REQUIRE(pair.until([&] {
    to_one.pump(random, 0);
    return pair.all_arrived();
  }));
  REQUIRE(to_one.first_bytes.size() >= 56 + 56 + 3 * 82);
  for (int lap = 0; lap < 3; ++lap) {
    stranger replays(pair.port(1));
    replays.say(to_one.first_bytes);
    CHECK(pair.until([&] {
      to_one.pump(random, 0);
      return replays.closed();
    }));
  }
  CHECK(pair.seen[1].due == 3);
  CHECK(pair.seen[1].wrong == 0);
  CHECK(pair.end(1).breaks(peer{0}) == 0);
}

namespace {

/// Rank 1 by hand: proves itself to rank 0 with the right secret, and then says what it likes.
class turncoat {
 public:
  explicit turncoat(tcp_pair& pair)
      : pair_(pair),
        mine_{pair.key, "pair", 1, tcp::decode_contact(pair.fabrics[1]->address())->self},
        line_(pair.port(0)) {}
  bool join() {
    const tcp::contact there = *tcp::decode_contact(pair_.fabrics[0]->address());
    tcp::handshake talk(mine_, 0, there.self);
    return pair_.until([&] {
      line_.say(talk.to_send());
      talk.sent(talk.to_send().size());
      const auto what = talk.got(talk.room().empty() ? 0 : line_.hear(talk.room()));
      if (what == tcp::handshake::news::proven)
        talk.propose({transport::session::resume_point::current_version, 1,
                      tcp::session_identity(mine_, 0, there.self), 1, 0xffffffff});
      return what == tcp::handshake::news::answered && talk.said() == tcp::verdict::agreed;
    });
  }
  void say(std::span<const std::byte> bytes) { line_.say(bytes); }
  bool closed() { return line_.closed(); }

 private:
  tcp_pair& pair_;
  tcp::identity mine_;
  stranger line_;
};

std::vector<std::byte> frame_of(std::uint32_t bytes, tcp::frame_kind kind, transport::session_header session,
                                std::size_t behind) {
  std::vector<std::byte> result(sizeof(tcp::frame_head) + behind);
  const tcp::frame_head head{bytes, kind, session};
  std::memcpy(result.data(), &head, sizeof head);
  return result;
}

}  // namespace

TEST_CASE("a proven peer that breaks the protocol is given up", "[tcp][hostile]") {
  using tcp::frame_kind;
  const std::vector<std::vector<std::byte>> bad = {
      frame_of(0xffffffffU, frame_kind::packet, {2, 0}, 100),  // longer than anything
      frame_of(8, frame_kind::packet, {2, 0}, 0),              // shorter than its head
      frame_of(32, static_cast<frame_kind>(7), {2, 0}, 16),    // of no kind
      frame_of(32, frame_kind::packet, {3, 0}, 16),            // out of turn
      frame_of(32, frame_kind::packet, {2, 17}, 16),           // acknowledges what was never sent
      frame_of(sizeof(tcp::frame_head), frame_kind::answer, {0, 5}, 0),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    tcp_pair pair;
    pair.attach();
    turncoat rank_one(pair);
    REQUIRE(rank_one.join());
    rank_one.say(frame_of(32, frame_kind::packet, {1, 0}, 16));
    CHECK(pair.until([&] { return pair.seen[0].due == 1; }));
    CHECK(pair.seen[0].wrong == 0);
    CHECK(pair.seen[0].downs.empty());
    rank_one.say(bad[i]);
    CHECK(pair.until([&] { return !pair.seen[0].downs.empty(); }));
    CHECK(pair.seen[0].downs == std::vector{errc::malformed});
    CHECK(rank_one.closed());
  }
}
