// How a sender gets the receiver's attention: cold bits, hot rings, rings demoted while somebody writes to
// them, a wake that is lost.
#include "runtime/waiter.hpp"
#include "tests/unit/shm_node.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

using namespace verbena;
using namespace verbena::testing;

namespace {

constexpr peer zero{0};

shm::pair_slot& slot(const shm_node& node, std::uint32_t receiver, std::uint32_t sender) {
  const auto at = node.places().at;
  return node.at<shm::pair_slot>(at.pairs +
                                 (std::uint64_t{receiver} * at.local_size + sender) * sizeof(shm::pair_slot));
}
std::uint64_t cold_word(const shm_node& node, std::uint32_t receiver) {
  const auto at = node.places().at;
  return node.at<std::atomic<std::uint64_t>>(at.cold_bits + std::uint64_t{receiver} * at.cold_words * 8)
      .load();
}

}  // namespace

TEST_CASE("the first message sets a cold bit, the next ones need none", "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  recorder sink;
  REQUIRE(send_message(*b, zero, 0, 8) == post_result::done);
  CHECK(cold_word(node, 0) == 2);
  CHECK(slot(node, 0, 1).hot.load() == 0);
  CHECK_FALSE(a->arm());
  CHECK(a->poll(0, sink) == 1);
  CHECK(cold_word(node, 0) == 0);
  CHECK(slot(node, 0, 1).hot.load() == 1);
  REQUIRE(send_message(*b, zero, 1, 8) == post_result::done);
  CHECK(cold_word(node, 0) == 0);
  CHECK_FALSE(a->arm());
  CHECK(a->poll(0, sink) == 1);
  CHECK(a->arm());
}

TEST_CASE("more senders than hot rings: all are heard, eight are hot", "[shm]") {
  constexpr std::uint32_t ranks = 70;  // more than one cold word
  shm_node node(ranks);
  auto a = node.fabric(0);
  std::vector<std::unique_ptr<shm::shm_fabric>> others;
  for (std::uint32_t i = 1; i < ranks; ++i) others.push_back(node.fabric(i));
  recorder sink;
  std::vector<std::uint64_t> next(ranks);
  base::nanoseconds now = 0;
  bool ordered = true;
  for (std::uint64_t round = 0; round < 40; ++round) {
    for (std::uint32_t i = 1; i < ranks; ++i)
      for (std::uint64_t k = 0; k < i % 3 + 1; ++k)
        REQUIRE(send_message(*others[i - 1], zero, round * 3 + k, 8 * (i % 9)) == post_result::done);
    for (int polls = 0; polls < 3; ++polls) a->poll(now += base::millisecond / 10, sink);
    for (const auto& p : sink.packets) {
      const std::uint64_t expected =
          next[p.from.index] / (p.from.index % 3 + 1) * 3 + next[p.from.index] % (p.from.index % 3 + 1);
      ordered = ordered && p.head.first == expected;
      ++next[p.from.index];
    }
    sink.packets.clear();
  }
  CHECK(ordered);
  std::uint32_t hot = 0;
  for (std::uint32_t i = 1; i < ranks; ++i) {
    CHECK(next[i] == 40 * (i % 3 + 1));
    hot += slot(node, 0, i).hot.load();
  }
  CHECK(hot == 8);
}

TEST_CASE("a sender that read `hot` just before the ring was demoted is still heard", "[shm]") {
  shm_node node(12);
  auto a = node.fabric(0);
  std::vector<std::unique_ptr<shm::shm_fabric>> others;
  for (std::uint32_t i = 1; i < 12; ++i) others.push_back(node.fabric(i));
  recorder sink;
  base::nanoseconds now = base::second;
  for (std::uint32_t i = 1; i < 9; ++i) {
    REQUIRE(send_message(*others[i - 1], zero, 0, 8) == post_result::done);
    a->poll(now, sink);
  }
  REQUIRE(slot(node, 0, 1).hot.load() == 1);
  std::uint32_t demoted = 0;
  for (int i = 0; i < 10 && demoted == 0; ++i) {  // the ninth, again and again, displaces one
    REQUIRE(send_message(*others[8], zero, 0, 8) == post_result::done);
    a->poll(now, sink);
    for (std::uint32_t k = 1; k < 9; ++k)
      if (slot(node, 0, k).hot.load() == 0) demoted = k;
  }
  REQUIRE(demoted != 0);
  CHECK(slot(node, 0, 9).hot.load() == 1);
  sink.packets.clear();

  slot(node, 0, demoted).hot.store(1);  // what the late sender sees
  REQUIRE(send_message(*others[demoted - 1], zero, 7, 8) == post_result::done);
  slot(node, 0, demoted).hot.store(0);
  CHECK(cold_word(node, 0) == 0);
  CHECK_FALSE(a->arm());
  for (int i = 0; i < 64; ++i) a->poll(now + base::millisecond, sink);
  REQUIRE(sink.packets.size() == 1);
  CHECK(sink.packets[0].head.first == 7);

  // Long after, it is no longer looked at by itself, and a message sets the cold bit again.
  for (int i = 0; i < 256; ++i) a->poll(now + base::second, sink);
  REQUIRE(send_message(*others[demoted - 1], zero, 8, 8) == post_result::done);
  CHECK(cold_word(node, 0) == 1ULL << demoted);
  a->poll(now + base::second, sink);
  CHECK(sink.packets.size() == 2);
}

TEST_CASE("a wake that is lost while the receiver goes to sleep costs a millisecond, not the message",
          "[shm]") {
  shm_node node(2);
  auto a = node.fabric(0);
  recorder sink;
  constexpr int rounds = 15;
  auto* answered = reinterpret_cast<std::atomic<int>*>(a->world_block().data());
  child_process child([&] {
    auto b = node.fabric(1);
    null_sink ignore;
    runtime::gate doors;
    runtime::waiter w(&node.page, 1, 0, doors);
    for (int i = 1; i <= rounds; ++i) {
      w.wait([&] { return b->poll(base::steady_now(), ignore) > 0; }, [&] { return b->arm(); },
             [&] { b->disarm(); });
      answered->store(i);
    }
    return 0;
  });
  auto& bell = node.page.bell(1);
  std::vector<double> took;
  for (int i = 1; i <= rounds; ++i) {
    while (bell.sleeping.load() == 0) std::this_thread::yield();
    const std::uint32_t word = bell.word.load();
    bell.sleeping.store(0);  // as if this sender had read it too early
    const auto start = base::steady_now();
    REQUIRE(send_message(*a, peer{1}, 0, 8) == post_result::done);
    CHECK(bell.word.load() == word);  // nobody rang
    while (answered->load() < i) std::this_thread::yield();
    took.push_back(static_cast<double>(base::steady_now() - start) / 1e6);
  }
  CHECK(child.wait() == 0);
  // The median, for this machine may take the processor away from either side for longer than that.
  std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
  CHECK(took[rounds / 2] < 2.0);
}
