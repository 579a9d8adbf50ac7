// Packets over the rings: sizes, order, wrap, growth, a full ring, cold, hot and lingering receivers.
#include "tests/unit/shm_node.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace verbena;
using namespace verbena::testing;
using transport::shm::inline_payload;

namespace {

constexpr peer zero{0};
constexpr peer one{1};

/// Sends messages first .. first + count - 1 with sizes by `size_of`, the receiver polling whenever the ring
/// is full and, by chance, at other times; checks order and content of all.
template <class SizeOf>
void flow(shm::shm_fabric& a, shm::shm_fabric& b, std::uint64_t count, SizeOf&& size_of, unsigned seed) {
  std::mt19937 random(seed);
  recorder sink;
  std::uint64_t sent = 0;
  std::uint64_t checked = 0;
  bool good = true;
  auto receive = [&] {
    b.poll(0, sink);
    for (const auto& p : sink.packets) {
      good = good && p.from == zero && p.head.first == checked && p.head.second == p.payload.size() &&
             p.payload.size() == size_of(checked) && matches(p.payload.data(), checked, p.payload.size());
      ++checked;
    }
    sink.packets.clear();
  };
  for (int stuck = 0; sent < count && stuck < 100;) {
    if (send_message(a, one, sent, size_of(sent)) == post_result::done) {
      ++sent;
      stuck = 0;
    } else {
      receive();
      ++stuck;
    }
    if (random() % 5 == 0) receive();
  }
  for (int i = 0; i < 100 && checked < sent; ++i) receive();
  CHECK(sent == count);
  CHECK(checked == count);
  CHECK(good);
}

}  // namespace

TEST_CASE("every size from 0 to the packet limit arrives whole and in order", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  REQUIRE(a->attach(one, {}));
  REQUIRE(b->attach(zero, {}));
  const std::size_t limit = a->limits(one).packet_bytes;
  CHECK(limit == 4096);
  CHECK(a->limits(one).inline_bytes == 40);
  flow(
      *a, *b, limit + 1, [](std::uint64_t n) { return n; }, 1);
  flow(
      *a, *b, limit + 1, [&](std::uint64_t n) { return limit - n; }, 2);
}

TEST_CASE("random sizes wrap both rings at every position", "[shm]") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    shm_node node(2);
    auto a = node.fabric(0);
    auto b = node.fabric(1);
    const std::uint64_t spread = seed % 4 == 0 ? 64 : seed % 4 == 1 ? 700 : seed % 4 == 2 ? 3000 : 4097;
    auto size_of = [&](std::uint64_t n) {
      return std::hash<std::uint64_t>{}(n * 2654435761u + seed) % spread;
    };
    flow(*a, *b, 5000, size_of, seed);
  }
}

TEST_CASE("a ring starts with one page, grows when it is found full, and stays below 64 KiB a pair",
          "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  recorder sink;
  const auto where = node.places();
  const auto& grown = node.at<shm::ring_block>(where.grown_ring(0, 1));
  REQUIRE(send_message(*a, one, 0, 8) == post_result::done);
  CHECK(node.at<shm::ring_block>(where.first_ring(0, 1)).lines == shm::first_ring_lines);
  CHECK(grown.lines == 0);

  // One line is kept back for the announcement of the larger ring.
  for (std::uint64_t n = 1; n < shm::first_ring_lines - 1; ++n)
    REQUIRE(send_message(*a, one, n, 8) == post_result::done);
  for (int i = 0; i < 1000; ++i) REQUIRE(send_message(*a, one, 29, 8) == post_result::again);
  CHECK(grown.lines == 0);  // asking again is not a second time
  b->poll(0, sink);
  CHECK(sink.packets.size() == 29);
  std::uint64_t next = 29;
  while (grown.lines == 0 && next < 200)
    if (send_message(*a, one, next, 8) == post_result::done) ++next;
  CHECK(grown.lines == 254);
  CHECK(where.grown.bytes() + shm::page_bytes == 64 * 1024);
  for (int i = 0; i < 20; ++i) b->poll(0, sink);
  REQUIRE(sink.packets.size() == next);
  for (std::uint64_t n = 0; n < next; ++n) CHECK(sink.packets[n].head.first == n);

  // The grown ring is bounded too: nothing taken, no side effect.
  std::uint64_t more = 0;
  while (send_message(*a, one, more, 8) == post_result::done && more < 1000) ++more;
  CHECK(more <= 254);
  CHECK(send_message(*a, one, more, 4000) == post_result::again);
}

TEST_CASE("a packet that cannot fit the first ring makes it grow at once", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  recorder sink;
  REQUIRE(send_message(*a, one, 0, 700) == post_result::done);
  REQUIRE(send_message(*a, one, 1, 1500) == post_result::done);
  CHECK(node.at<shm::ring_block>(node.places().grown_ring(0, 1)).lines == 254);
  b->poll(0, sink);
  REQUIRE(sink.packets.size() == 2);
  CHECK(matches(sink.packets[0].payload.data(), 0, 700));
  CHECK(matches(sink.packets[1].payload.data(), 1, 1500));
}

TEST_CASE("where address space is short rings stay small, and packets with them", "[shm]") {
  shm_node node(2, 1200 * 1024);
  const auto where = node.places();
  REQUIRE(where.heap_bytes > 0);
  CHECK(where.grown.lines < 254);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  const std::size_t limit = a->limits(one).packet_bytes;
  CHECK(limit <= 4096);
  CHECK(limit >= 240);
  flow(
      *a, *b, 4000, [&](std::uint64_t n) { return n * 37 % (limit + 1); }, 3);
}

TEST_CASE("a segment too small for the areas is refused with a sentence", "[shm]") {
  shm_node node(2, 1060 * 1024);
  CHECK_THROWS_WITH(node.fabric(0), Catch::Matchers::Contains("too small for 2 ranks"));
}

TEST_CASE("the places of an arena do not overlap, for 1 to 1024 ranks", "[shm]") {
  for (std::uint32_t n : {1u, 2u, 64u, 65u, 128u, 500u, 1024u}) {
    const std::uint64_t span = base::default_rank_span(n);
    const auto at = shm::make_layout(n, 1 << 20, (1 << 20) + span * n);
    const auto where = shm::make_places(at);
    CHECK(where.grown.lines > 0);
    CHECK(where.first_ring(0, n - 1) + shm::page_bytes <= where.grown_ring(0, 0));
    CHECK(where.grown_ring(0, n - 1) + where.grown.bytes() <= at.arena(0) + where.transfers);
    CHECK(where.heap + where.heap_bytes == at.arena_bytes);
    CHECK(where.heap_bytes >= 4u << 20);
    CHECK(where.packet_bytes() >= 3072);
    CHECK(where.packet_bytes() % 64 == 0);
  }
}

TEST_CASE("a peer outside the node is not attached, and the reason is given", "[shm]") {
  shm_node node(2, 0, 4);
  auto a = node.fabric(0);
  CHECK(a->attach(peer{5}, {}));
  CHECK_FALSE(a->attach(peer{4}, {}));
  CHECK_FALSE(a->attach(peer{3}, {}));
  CHECK(a->explain(peer{3}) == "shm: rank 3 is not on this node");
  CHECK(a->explain(peer{4}) == "shm: rank 4 is this process");
  CHECK(send_message(*a, peer{3}, 0, 8) == post_result::down);
  recorder sink;
  CHECK(a->poll_from(peer{3}, 0, sink) == 0);
}

TEST_CASE("peers that lie next to each other in the table are met one by one", "[shm]") {
  shm_node node(3);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  auto c = node.fabric(2);
  recorder at_a;
  recorder at_c;
  REQUIRE(send_message(*a, one, 0, 8) == post_result::done);
  REQUIRE(send_message(*a, peer{2}, 1, 8) == post_result::done);  // shares a leaf with one
  REQUIRE(send_message(*c, zero, 2, 8) == post_result::done);
  c->poll(0, at_c);
  REQUIRE(at_c.packets.size() == 1);
  CHECK(at_c.packets[0].head.first == 1);
  REQUIRE(send_message(*b, peer{2}, 3, 8) == post_result::done);
  for (int i = 0; i < 3; ++i) c->poll_from(one, 0, at_c);  // c never met one by any other way
  CHECK(at_c.packets.size() == 2);
  for (int i = 0; i < 3; ++i) a->poll_from(peer{2}, 0, at_a);
  CHECK(at_a.packets.size() == 1);
}
