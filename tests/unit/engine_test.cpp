// The engine over simulated fabrics, without threads: every protocol, in every order of posting.
#include "tests/unit/simulated_job.hpp"

#include <catch2/catch.hpp>

#include <deque>

using namespace verbena;
using namespace verbena::runtime;
namespace sim = verbena::transport::sim;
using tests::pattern;
using tests::simulated_job;
using tests::world_of;

TEST_CASE("messages of every protocol arrive whole, whichever side comes first", "[engine]") {
  const auto bulk = GENERATE(transport::bulk_method::put, transport::bulk_method::stream);
  const bool receive_first = GENERATE(true, false);
  const std::uint32_t to = GENERATE(0U, 1U);  // to itself, to the other
  simulated_job job(world_of(bulk, 512, 2000));
  for (std::size_t size : {0u, 1u, 40u, 41u, 496u, 512u, 513u, 2000u, 2001u, 100'000u}) {
    INFO("size " << size << " receive first " << receive_first << " to " << to);
    const auto data = pattern(size, 3);
    std::vector<std::byte> into(size + 3, std::byte{0xee});
    operation sent, received;
    if (receive_first) job.receive(received, to, rank{0}, into, tag{5});
    job.send(sent, 0, to, data, 5);
    job.run();
    if (!receive_first) {
      job.receive(received, to, any_source, into, any_tag);
      job.run();
    }
    REQUIRE(sent.done());
    REQUIRE(received.done());
    CHECK(sent.result.error == errc::success);
    CHECK(received.result.error == errc::success);
    CHECK(received.result.bytes == size);
    CHECK(received.result.source == rank{0});
    CHECK(received.result.label == tag{5});
    CHECK(std::equal(data.begin(), data.end(), into.begin()));
    CHECK(into[size] == std::byte{0xee});
  }
  CHECK(job.contexts[0]->engine().nothing_pending());
  CHECK(job.contexts[1]->engine().nothing_pending());
  CHECK(job.contexts[0]->engine().counts().malformed == 0);
}

TEST_CASE("a message longer than the receive is an error there, and harms nothing else", "[engine]") {
  const std::size_t size = GENERATE(9u, 700u, 5000u);
  const bool receive_first = GENERATE(true, false);
  simulated_job job(world_of(transport::bulk_method::put, 512, 2000));
  const auto data = pattern(size, 1);
  const auto next = pattern(8, 9);
  std::vector<std::byte> into(8, std::byte{0xee}), guard(8), after(8);
  into.reserve(16);
  operation sent, sent2, received, received2;
  if (receive_first) job.receive(received, 1, rank{0}, into, tag{5});
  job.send(sent, 0, 1, data, 5);
  job.send(sent2, 0, 1, next, 5);
  job.run();
  if (!receive_first) job.receive(received, 1, rank{0}, into, tag{5});
  job.receive(received2, 1, rank{0}, after, tag{5});
  job.run();
  REQUIRE(received.done());
  CHECK(received.result.error == errc::truncated);
  CHECK(received.result.sent_bytes == size);
  CHECK(received.result.source == rank{0});
  CHECK(sent.done());
  CHECK(sent.result.error == errc::success);
  REQUIRE(received2.done());
  CHECK(after == next);
  CHECK(job.contexts[0]->engine().nothing_pending());
}

TEST_CASE("messages do not overtake each other, whatever their sizes", "[engine]") {
  sim::world_options o = world_of(transport::bulk_method::put, 512, 2000);
  o.jitter = 50'000;
  o.again_ppm = 300'000;
  o.window = 4;
  simulated_job job(o);
  constexpr int count = 60;
  std::vector<std::vector<std::byte>> data, into;
  std::deque<operation> sent(count), received(count);
  for (int i = 0; i < count; ++i) {
    data.push_back(pattern(static_cast<std::size_t>(i * 977 % 6000), static_cast<unsigned>(i)));
    into.emplace_back(6000);
  }
  for (std::size_t i = 0; i < count; ++i) job.send(sent[i], 0, 1, data[i], 7);
  job.run();
  for (std::size_t i = 0; i < count; ++i) job.receive(received[i], 1, any_source, into[i], any_tag);
  job.run();
  for (std::size_t i = 0; i < count; ++i) {
    INFO("message " << i);
    REQUIRE(received[i].done());
    REQUIRE(sent[i].done());
    REQUIRE(received[i].result.bytes == data[i].size());
    CHECK(std::equal(data[i].begin(), data[i].end(), into[i].begin()));
  }
  CHECK(job.contexts[0]->engine().counts().refused > 0);
}

TEST_CASE("the death of a peer ends what concerns it, and nothing else", "[engine]") {
  sim::world_options o = world_of(transport::bulk_method::put, 512, 2000);
  o.size = 3;
  simulated_job job(o);
  std::vector<std::byte> from_dead(100), from_any(100), from_living(100);
  const auto large = pattern(50'000, 1);
  operation recv_dead, recv_any, recv_living, send_dead, send_living;
  job.receive(recv_dead, 0, rank{2}, from_dead, tag{1});
  job.receive(recv_living, 0, rank{1}, from_living, tag{1});
  job.receive(recv_any, 0, any_source, from_any, tag{9});
  job.send(send_dead, 0, 2, large, 3);
  job.world.kill(peer{2});
  job.run();
  CHECK(recv_dead.result.error == errc::peer_failed);
  CHECK(recv_any.result.error == errc::peer_failed);
  CHECK(send_dead.result.error == errc::peer_failed);
  CHECK_FALSE(recv_living.done());
  const auto data = pattern(100, 4);
  job.send(send_living, 1, 0, data, 1);
  job.run();
  CHECK(recv_living.done());
  CHECK(from_living == data);
  operation late;
  job.receive(late, 0, rank{2}, from_dead, tag{1});
  CHECK(late.result.error == errc::peer_failed);
  operation late_send;
  job.send(late_send, 0, 2, data, 1);
  CHECK(late_send.result.error == errc::peer_failed);
  CHECK(job.contexts[0]->engine().nothing_pending());
}

TEST_CASE("a cancelled receive gets nothing, a matched one cannot be cancelled", "[engine]") {
  simulated_job job(world_of(transport::bulk_method::put, 512, 2000));
  std::vector<std::byte> first(8), second(8);
  operation a, b, sent;
  job.receive(a, 1, rank{0}, first, tag{1});
  job.receive(b, 1, rank{0}, second, tag{1});
  CHECK(job.contexts[1]->engine().cancel(a));
  CHECK(a.result.error == errc::cancelled);
  const auto data = pattern(8, 1);
  job.send(sent, 0, 1, data, 1);
  job.run();
  CHECK(second == data);
  CHECK(first == std::vector<std::byte>(8));
  CHECK_FALSE(job.contexts[1]->engine().cancel(b));
}
