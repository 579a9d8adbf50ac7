// What becomes of messages for a communicator that this rank has not made yet, or has freed: in every
// protocol, and in the order that matters.
#include "runtime/communicator_maker.hpp"
#include "tests/unit/sim_job.hpp"

#include <catch2/catch.hpp>

#include <deque>

using namespace verbena;
using namespace verbena::runtime;
using tests::sim_job;

namespace {

transport::sim::world_options three_protocols() {
  transport::sim::world_options o;
  o.limits.packet_bytes = 512;
  o.limits.eager_bytes = 2000;
  return o;
}
constexpr std::size_t sizes[] = {0, 100, 1800, 50000};  // empty, one packet, pieces, announced

struct traffic {
  std::deque<operation> ops;
  std::deque<std::vector<std::byte>> data;

  operation& send(communicator on, rank to, std::size_t bytes) {
    communicator_state& state = communicator_access::state(on);
    data.emplace_back(bytes, static_cast<std::byte>(bytes % 251));
    state.host().engine().send(ops.emplace_back(), state.way_to(to), data.back().data(), bytes, tag{1});
    return ops.back();
  }
  operation& receive(communicator on, rank from, std::size_t bytes) {
    communicator_state& state = communicator_access::state(on);
    const peer source = state.peer_of(from);
    data.emplace_back(bytes + 1);
    state.host().engine().receive(ops.emplace_back(), &source, {state.context(), from, tag{1}},
                                  data.back().data(), bytes);
    return ops.back();
  }
};

std::uint64_t stale(context_state& of) {
  return of.engine().counts().stale;
}

}  // namespace

TEST_CASE("messages that come before their communicator wait for it", "[contexts]") {
  sim_job job(three_protocols());
  traffic all;
  communicator_maker fast(communicator_access::handle(job[0].world())),
      slow(communicator_access::handle(job[1].world()));
  REQUIRE(fast.hold(5));
  REQUIRE(slow.hold(5));
  const owned_communicator a = fast.make(9, {}, 0);
  for (const std::size_t bytes : sizes) all.send(a, rank{1}, bytes);
  job.run();
  CHECK(stale(job[1]) == 0);
  const owned_communicator b = slow.make(9, {}, 0);
  for (const std::size_t bytes : sizes) {
    all.receive(b, rank{0}, bytes);
    job.run();
    REQUIRE(all.ops.back().done());
    CHECK(all.ops.back().result.error == errc::success);
    CHECK(all.ops.back().result.bytes == bytes);
    CHECK((bytes == 0 || all.data.back()[bytes - 1] == static_cast<std::byte>(bytes % 251)));
  }
  for (const operation& op : all.ops) CHECK(op.done());
  CHECK(job[1].engine().counts().malformed == 0);
}

TEST_CASE("messages for an older communicator in the same place are dropped, whenever they come",
          "[contexts]") {
  // 0: before the new one is begun, 1: while it is made, 2: when it is there.
  const int moment = GENERATE(0, 1, 2);
  sim_job job(three_protocols());
  traffic all;
  const auto made = [&](std::size_t at, std::uint64_t generation) {
    communicator_maker maker(communicator_access::handle(job[at].world()));
    REQUIRE(maker.hold(5));
    return maker.make(generation, {}, 0);
  };
  owned_communicator sending = made(0, 1), receiving = made(1, 1);
  receiving.free();
  communicator_maker maker(communicator_access::handle(job[1].world()));
  owned_communicator next;
  if (moment >= 1) REQUIRE(maker.hold(5));
  if (moment == 2) next = maker.make(2, {}, 0);
  for (const std::size_t bytes : sizes) all.send(sending, rank{1}, bytes);
  job.run();
  CHECK(stale(job[1]) == (moment == 1 ? 0 : 4));
  if (moment == 0) REQUIRE(maker.hold(5));
  if (moment <= 1) next = maker.make(2, {}, 0);
  CHECK(stale(job[1]) == 4);
  job.run();
  for (const operation& op : all.ops) CHECK(op.done());  // even the one that was announced

  // The new one works, and has none of it.
  sending.free();
  const owned_communicator other = made(0, 2);
  operation& received = all.receive(next, rank{0}, 100);
  job.run();
  CHECK_FALSE(received.done());
  all.send(other, rank{1}, 100);
  job.run();
  CHECK(received.done());
  CHECK(stale(job[1]) == 4);
  CHECK(job[1].engine().counts().malformed == 0);
  CHECK(job[0].engine().counts().malformed == 0);
}

TEST_CASE("a communicator that goes in the middle of a message takes it along", "[contexts]") {
  sim_job job(three_protocols());
  traffic all;
  const auto made = [&](std::size_t at) {
    communicator_maker maker(communicator_access::handle(job[at].world()));
    REQUIRE(maker.hold(5));
    return maker.make(1, {}, 0);
  };
  const owned_communicator sending = made(0);
  owned_communicator receiving = made(1);
  all.send(sending, rank{1}, 1800);
  operation& after = all.send(communicator_access::handle(job[0].world()), rank{1}, 10);
  while (!job[1].engine().counts().unexpected) {  // its first piece
    job[0].progress(job.world.now());
    job.world.step();
    job[1].progress(job.world.now());
  }
  receiving.free();
  job.run();
  CHECK(after.done());
  CHECK(all.receive(communicator_access::handle(job[1].world()), rank{0}, 10).done());
  CHECK(stale(job[1]) == 1);
  CHECK(job[1].engine().counts().malformed == 0);
}

TEST_CASE("an agreement that fails leaves its place free", "[contexts]") {
  sim_job job(three_protocols());
  {
    communicator_maker maker(communicator_access::handle(job[0].world()));
    CHECK(maker.lowest_free(0) == 3);
    REQUIRE(maker.hold(3));
    CHECK(maker.lowest_free(0) == 4);
  }
  communicator_maker maker(communicator_access::handle(job[0].world()));
  CHECK(maker.lowest_free(0) == 3);
}

TEST_CASE("ranks that free a communicator with unreceived messages for each other do not wait for ever",
          "[contexts]") {
  const std::size_t bytes = GENERATE(1800U, 50000U);
  const bool persistent = GENERATE(false, true);
  sim_job job(three_protocols());
  traffic all;
  std::byte room[10];
  std::deque<owned_communicator> made;
  std::deque<persistent_request> kept;
  for (std::size_t r = 0; r < 2; ++r) {
    communicator_maker maker(communicator_access::handle(job[r].world()));
    REQUIRE(maker.hold(5));
    made.push_back(maker.make(1, {}, 0));
  }
  operation& asked = all.receive(made[0], rank{1}, 5000);
  for (std::int64_t r = 0; r < 2; ++r) {
    auto& state = communicator_access::state(made[static_cast<std::size_t>(r)]);
    all.data.emplace_back(bytes);
    state.host().engine().send(all.ops.emplace_back(), state.way_to(rank{1 - r}), all.data.back().data(),
                               bytes, tag{2},
                               true);  // not over before it is matched, or dropped
    if (persistent)
      kept.push_back(made[static_cast<std::size_t>(r)].recv_init(room, sizeof room, rank{1 - r}, tag{2}));
  }
  job.run();
  made.clear();
  job.run();
  for (std::size_t i = 1; i < 3; ++i)
    CHECK(all.ops[i].done() == !persistent);  // who may still ask finds them
  kept.clear();
  for (std::size_t r = 0; r < 2; ++r) job[r].reap();
  job.run();
  for (std::size_t i = 1; i < 3; ++i) CHECK(all.ops[i].done());
  CHECK_FALSE(asked.done());  // was posted before, and is not given up
  CHECK(stale(job[0]) + stale(job[1]) == 2);
  CHECK(job[0].engine().cancel(asked));
}

TEST_CASE("a death ends receives from anybody only where the dead could have sent", "[contexts]") {
  auto options = three_protocols();
  options.size = 3;
  sim_job job(options);
  const auto handle = [&](context_state& of) { return communicator_access::handle(of.world()); };
  communicator_maker maker(handle(job[0]));
  REQUIRE(maker.hold(5));
  const std::vector<int> two{0, 1};
  const owned_communicator without = maker.make(1, two, 0);
  int value = 0, other = 0, later = 0;
  request everybody = handle(job[0]).irecv(&value, sizeof value),
          of_two = without.irecv(&other, sizeof other);
  job.world.kill(peer{2});
  job.run();
  CHECK(everybody.done());
  CHECK_THROWS_WITH(everybody.wait(), Catch::Contains("a rank that might have sent is gone: rank 2"));
  CHECK_FALSE(of_two.done());
  request afterwards = without.irecv(&later, sizeof later);
  CHECK_FALSE(afterwards.done());
  CHECK_FALSE(without.iprobe());
  CHECK(handle(job[0]).irecv(&value, sizeof value).wait(std::nothrow).error == errc::peer_failed);
  CHECK(of_two.cancel());
  CHECK(afterwards.cancel());
}

TEST_CASE("what the dead sent whole does not overtake what died with it", "[contexts]") {
  sim_job job(three_protocols());
  traffic all;
  const communicator sending = communicator_access::handle(job[0].world()),
                     receiving = communicator_access::handle(job[1].world());
  all.send(sending, rank{1}, 10);
  all.send(sending, rank{1}, 50000);  // announced: its data stays with the sender
  all.send(sending, rank{1}, 20);
  job.run();
  REQUIRE(job[1].engine().counts().unexpected == 3);
  job.world.kill(peer{0});
  job.run();
  operation& first = all.receive(receiving, rank{0}, 100);
  CHECK(first.result.error == errc::success);
  CHECK(first.result.bytes == 10);
  CHECK(all.receive(receiving, rank{0}, 60000).result.error == errc::peer_failed);
  CHECK(all.receive(receiving, rank{0}, 100).result.error == errc::peer_failed);
}
