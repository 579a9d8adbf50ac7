// How transfers end when one of the two is slow, asleep or gone: what is whole has succeeded, nobody waits for somebody
// who has nothing to do with it.
#include "tests/unit/shm_node.hpp"

#include <catch2/catch.hpp>

#include <deque>

using namespace verbena;
using namespace verbena::testing;

namespace {

constexpr std::size_t large = 100'000;

std::vector<std::byte> bytes_of(std::uint64_t n) {
  std::vector<std::byte> v(large);
  fill(v.data(), n, large);
  return v;
}
buffer over(std::vector<std::byte>& v) { return {v.data(), v.size()}; }

}  // namespace

TEST_CASE("a message that is whole when its receiver goes has been sent", "[shm]") {
  const auto how = GENERATE(base::rank_state::left, base::rank_state::failed);
  shm_node node(2);
  auto a = node.fabric(0), b = node.fabric(1);
  recorder sink;
  std::vector<std::byte> source = bytes_of(1), target(large);
  std::deque<operation> sent(20), received(20);  // more than one poll looks at
  for (std::size_t i = 0; i < sent.size(); ++i) {
    remote_key ticket;
    REQUIRE(a->offer(peer{1}, over(source), ticket, sent[i]) == post_result::pending);
    if (i + 1 == sent.size()) break;  // the last one is never accepted
    REQUIRE(b->accept(peer{0}, over(target), ticket, received[i]) == post_result::pending);
  }
  for (int i = 0; i < 1000; ++i) b->poll(0, sink);  // the receiver copies all of them alone
  for (std::size_t i = 0; i + 1 < received.size(); ++i) REQUIRE(received[i].done());
  node.page.announce(1, how, 0);
  for (int i = 0; i < 200; ++i) a->poll(0, sink);
  REQUIRE(sink.downs.size() == 1);
  for (std::size_t i = 0; i + 1 < sent.size(); ++i) {
    INFO("message " << i);
    CHECK((sent[i].done() && sent[i].result.error == errc::success));
  }
  CHECK(sent.back().result.error == (how == base::rank_state::left ? errc::peer_left : errc::peer_failed));
}

TEST_CASE("a receiver that holds on to its descriptors keeps nobody else waiting", "[shm]") {
  shm_node node(3);
  auto a = node.fabric(0), busy = node.fabric(1), c = node.fabric(2);
  recorder sink;
  std::vector<std::byte> source = bytes_of(1), target(large);
  std::deque<operation> sent(8), received(8);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    remote_key ticket;
    REQUIRE(a->offer(peer{1}, over(source), ticket, sent[i]) == post_result::pending);
    REQUIRE(busy->accept(peer{0}, over(target), ticket, received[i]) == post_result::pending);
  }
  for (int i = 0; i < 1000; ++i) a->poll(0, sink);  // copied by the sender; the receiver computes and looks at nothing
  for (const operation& op : sent) REQUIRE(op.done());
  for (int i = 0; i < 1000; ++i) {
    operation out, in;
    remote_key ticket;
    REQUIRE(a->offer(peer{2}, over(source), ticket, out) == post_result::pending);
    REQUIRE(c->accept(peer{0}, over(target), ticket, in) == post_result::pending);
    for (int k = 0; k < 100 && !(out.done() && in.done()); ++k) a->poll(0, sink), c->poll(0, sink);
    REQUIRE((out.done() && in.done()));
  }
  for (int i = 0; i < 1000; ++i) busy->poll(0, sink);
  for (const operation& op : received) CHECK(op.done());
}

TEST_CASE("a receiver that cannot copy calls a sender that sleeps", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0), b = node.fabric(1, {.single_copy = false});
  std::vector<std::byte> source = bytes_of(1), target(large);
  operation out, in;
  remote_key ticket;
  REQUIRE(a->offer(peer{1}, over(source), ticket, out) == post_result::pending);
  base::doorbell& bell = node.page.bell(0);
  bell.sleeping.store(1);
  const std::uint32_t before = bell.word.load();
  REQUIRE(b->accept(peer{0}, over(target), ticket, in) == post_result::pending);
  CHECK(bell.word.load() == before + 1);
}

TEST_CASE("a rank joins the segment once", "[shm]") {
  shm_node node(2);
  { auto first = node.fabric(0); }
  CHECK_THROWS_WITH(node.fabric(0), Catch::Contains("rank 0 has joined this job already"));
}
