// What happens when the process at the other end dies, leaves, or writes nonsense.
#include "tests/unit/shm_node.hpp"

#include <catch2/catch.hpp>
#include <csignal>

using namespace verbena;
using namespace verbena::testing;

namespace {

constexpr peer zero{0};
constexpr peer one{1};

/// Also keeps whether pending operations were over when a peer was reported.
struct death_recorder : recorder {
  std::vector<const operation*> watched;
  bool operations_first = true;
  void on_peer_down(peer who, errc why) noexcept {
    for (const operation* op : watched) operations_first = operations_first && op->done();
    recorder::on_peer_down(who, why);
  }
};

[[noreturn]] void sleep_until_killed() {
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("what a rank sent before it died is delivered, then its death is reported once", "[shm]") {
  shm_node node(3);
  auto a = node.fabric(0);
  REQUIRE(a->attach(one, {}));
  REQUIRE(a->attach(peer{2}, {}));
  death_recorder sink;
  auto* ready = reinterpret_cast<std::atomic<int>*>(a->world_block().data());
  auto* tickets = reinterpret_cast<remote_key*>(a->world_block().data() + 64);

  std::vector<std::byte> mine(1 << 20), theirs(1 << 20);
  operation sending, stuck, receiving;
  remote_key sending_ticket, stuck_ticket;
  {
    child_process child([&]() -> int {
      auto b = node.fabric(1);
      for (std::uint64_t n = 0; n < 100; ++n)
        while (send_message(*b, zero, n, n * 10) != post_result::done) {
        }
      std::vector<std::byte> big(1 << 20);
      operation op;
      b->offer(zero, {big.data(), big.size()}, tickets[0], op);
      ready->store(1);
      while (ready->load() == 1) ::usleep(100);
      operation accepted, half;
      b->accept(zero, {big.data(), big.size()}, tickets[1], accepted);
      b->accept(zero, {big.data(), big.size()}, tickets[2], half);
      node.at<shm::transfer>(tickets[2].address).claimed.store(~0U);  // it had claimed all when it died
      ready->store(3);
      sleep_until_killed();
    });
    recorder early;
    while (ready->load() != 1) {
      a->poll(0, early);
      sink.packets.insert(sink.packets.end(), early.packets.begin(), early.packets.end());
      early.packets.clear();
    }
    REQUIRE(a->limits(one).bulk == bulk_method::together);
    REQUIRE(a->offer(one, {mine.data(), mine.size()}, sending_ticket, sending) == post_result::pending);
    REQUIRE(a->offer(one, {mine.data(), mine.size()}, stuck_ticket, stuck) == post_result::pending);
    REQUIRE(a->accept(one, {theirs.data(), theirs.size()}, tickets[0], receiving) == post_result::pending);
    tickets[1] = sending_ticket;
    tickets[2] = stuck_ticket;
    ready->store(2);
    while (ready->load() != 3) ::usleep(100);
    ::kill(child.pid(), SIGKILL);
    CHECK(child.wait() == -SIGKILL);
  }
  // Dead, but not announced: copies fail, nothing is reported yet, nothing hangs that can know.
  for (int i = 0; i < 200; ++i) a->poll(0, sink);
  CHECK(sink.downs.empty());
  CHECK((sending.done() && sending.result.error == errc::peer_failed));
  CHECK((receiving.done() && receiving.result.error == errc::peer_failed));
  CHECK_FALSE(stuck.done());

  sink.watched = {&stuck};
  node.page.announce(1, base::rank_state::failed, 9);
  CHECK_FALSE(a->arm());
  for (int i = 0; i < 200; ++i) a->poll(0, sink);
  REQUIRE(sink.packets.size() == 100);
  for (std::uint64_t n = 0; n < 100; ++n) CHECK(matches(sink.packets[n].payload.data(), n, n * 10));
  REQUIRE(sink.downs.size() == 1);
  CHECK(sink.downs[0] == std::pair{one, errc::peer_failed});
  CHECK(sink.operations_first);
  CHECK(stuck.result.error == errc::peer_failed);
  CHECK(a->arm());

  remote_key ticket;
  operation op;
  CHECK(send_message(*a, one, 0, 8) == post_result::down);
  CHECK(send_message(*a, one, 0, 100) == post_result::down);
  CHECK(a->offer(one, {mine.data(), 100}, ticket, op) == post_result::down);
  CHECK(a->put(one, {mine.data(), 100}, ticket, 0, op) == post_result::down);
  CHECK(a->explain(one) == "shm: rank 1 has failed");
  CHECK(send_message(*a, peer{2}, 0, 8) == post_result::done);  // nobody else is concerned
  node.page.announce(1, base::rank_state::failed, 9);
  for (int i = 0; i < 200; ++i) a->poll(0, sink);
  CHECK(sink.downs.size() == 1);
}

TEST_CASE("undelivered packets of a dead rank come before its death, however many", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  death_recorder sink;
  auto* count = reinterpret_cast<std::atomic<std::size_t>*>(a->world_block().data());
  child_process child([&] {
    auto b = node.fabric(1);
    std::uint64_t n = 0;
    while (send_message(*b, zero, n, n < 2 ? 1500 : 8) == post_result::done) ++n;  // into the grown ring
    count->store(n);
    return 0;
  });
  REQUIRE(child.wait() == 0);
  const std::size_t sent = count->load();
  REQUIRE(sent > 200);  // more than one look takes
  REQUIRE(a->attach(one, {}));
  node.page.announce(1, base::rank_state::failed, 0);
  CHECK_FALSE(a->arm());  // the next poll reads the news
  std::size_t seen_at_death = 0;
  for (int i = 0; i < 200; ++i) {
    a->poll(0, sink);
    if (!sink.downs.empty() && seen_at_death == 0) seen_at_death = sink.packets.size();
  }
  CHECK(seen_at_death == sent);
  CHECK(sink.downs.size() == 1);
}

TEST_CASE("a rank that died before it was attached is reported when it is", "[shm]") {
  shm_node node(3);
  auto a = node.fabric(0);
  recorder sink;
  node.page.announce(1, base::rank_state::failed, 0);
  for (int i = 0; i < 100; ++i) a->poll(0, sink);
  CHECK(sink.downs.empty());
  REQUIRE(a->attach(one, {}));
  CHECK_FALSE(a->arm());
  a->poll(0, sink);
  CHECK(sink.downs.size() == 1);
}

TEST_CASE("a rank that left in good order is read to the end and then reported", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  recorder sink;
  REQUIRE(send_message(*a, one, 0, 8) == post_result::done);
  REQUIRE(send_message(*b, zero, 0, 8) == post_result::done);
  node.page.announce(1, base::rank_state::left, 0);
  for (int i = 0; i < 100; ++i) a->poll(0, sink);
  CHECK(sink.packets.size() == 1);
  REQUIRE(sink.downs.size() == 1);
  CHECK(sink.downs[0] == std::pair{one, errc::peer_left});
  CHECK(send_message(*a, one, 1, 8) == post_result::down);
  CHECK(a->explain(one) == "shm: rank 1 has left the job");
  CHECK(a->arm());
}

TEST_CASE("lines that no honest sender writes end the peer, not the receiver", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  recorder sink;
  REQUIRE(send_message(*b, zero, 0, 8) == post_result::done);
  REQUIRE(send_message(*b, zero, 1, 8) == post_result::done);
  const auto where = node.places();
  auto* lines = &node.at<shm::ring_line>(where.first_ring(1, 0) + sizeof(shm::ring_block));
  SECTION("a size beyond the data ring") {
    lines[1].size = 2049;
  }
  SECTION("a huge size") {
    lines[1].size = 0xfffffffd;
  }
  SECTION("a ring that moved to where it cannot be") {
    lines[1].size = shm::moved;
    const std::uint64_t offset = where.grown_ring(1, 0) + 64;
    std::memcpy(lines[1].payload, &offset, sizeof offset);
  }
  for (int i = 0; i < 3; ++i) a->poll(0, sink);
  CHECK(sink.packets.size() == 1);
  REQUIRE(sink.downs.size() == 1);
  CHECK(sink.downs[0] == std::pair{one, errc::malformed});
  CHECK(send_message(*a, one, 0, 8) == post_result::down);
  node.page.announce(1, base::rank_state::failed, 0);
  for (int i = 0; i < 200; ++i) a->poll(0, sink);
  CHECK(sink.downs.size() == 1);
}
