// One-sided access over simulated fabrics: with and without native operations, refusals and jitter,
// revocation in the middle, death, and replies that nobody should believe.
#include "runtime/one_sided.hpp"
#include "tests/unit/sim_job.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <optional>

using namespace verbena;
using namespace verbena::runtime;
using tests::sim_job;
using wire::one_sided_kind;

namespace {

transport::sim::world_options world_of(bool native, bool rough) {
  transport::sim::world_options o;
  o.size = 3;
  o.limits.packet_bytes = 256;
  o.limits.native_put = native;
  o.limits.native_atomics = native && !rough;
  if (rough) {
    o.jitter = 5000;
    o.again_ppm = 300'000;
    o.refuse_region_ppm = 300'000;
    o.completes_at_once_ppm = 500'000;
    o.window = 4;
    o.ragged_polls = true;
  }
  return o;
}

communicator world_at(sim_job& job, std::size_t rank) {
  return communicator_access::handle(job[rank].world());
}

/// A message after which the test looks at memory.
struct message_to {
  message_to(sim_job& job, std::size_t from, std::uint32_t to) {
    communicator_state& state = job[from].world();
    job[from].engine().send(sent, state.way_to(rank{to}), nullptr, 0, tag{9});
    const peer source{static_cast<std::uint32_t>(from)};
    job[to].engine().receive(received, &source, {state.context(), rank{static_cast<int>(from)}, tag{9}},
                             nullptr, 0);
  }
  operation sent, received;
};

void turn(sim_job& job) {
  for (auto& c : job.contexts) c->progress(job.world.now());
  job.world.step();
}

}  // namespace

TEST_CASE("accesses are right however they travel", "[one_sided][engine]") {
  const bool native = GENERATE(true, false);
  const bool rough = GENERATE(true, false);
  INFO("native " << native << ", rough " << rough);
  sim_job job(world_of(native, rough));
  for (int round = 0; round < 10; ++round) {
    std::vector<std::byte> target(5000, std::byte{1}), source(3000, static_cast<std::byte>(round + 2)),
        back(3000);
    alignas(8) std::uint64_t word = 10;
    std::uint64_t old_sum = 0, old_swap = 0;
    const region there = register_memory(world_at(job, 1), target);
    const region counter = register_memory(world_at(job, 1), &word, sizeof word);
    std::deque<request> all;
    all.push_back(iput(world_at(job, 0), source.data(), source.size(), rank{1}, there.key(), 7));
    all.push_back(iput_with_flag(world_at(job, 0), source.data(), 900, rank{1}, there.key(), 4000, 100));
    all.push_back(iput_with_flag(world_at(job, 0), nullptr, 0, rank{1}, there.key(), 0, 101));
    message_to after(job, 0, 1);
    while (!after.received.done()) turn(job);
    for (std::size_t i = 0; i < target.size(); ++i)
      REQUIRE(target[i] == ((i >= 7 && i < 3007) || (i >= 4000 && i < 4900) ? source[0] : std::byte{1}));
    CHECK(job[1].engine().take_flag(peer{0}) == 100U);
    CHECK(job[1].engine().take_flag(peer{0}) == 101U);
    CHECK_FALSE(job[1].engine().take_flag(peer{0}));
    job.run();
    all.push_back(iget(world_at(job, 2), back.data(), back.size(), rank{1}, there.key(), 7));
    all.push_back(ifetch_add(world_at(job, 2), 5, rank{1}, counter.key(), 0, old_sum));
    job.run();
    all.push_back(icompare_swap(world_at(job, 0), 15, 99, rank{1}, counter.key(), 0, old_swap));
    job.run();
    for (request& r : all) {
      REQUIRE(r.done());
      CHECK(r.wait(std::nothrow).error == errc::success);
    }
    CHECK(back == source);
    CHECK(old_sum == 10);
    CHECK(old_swap == 15);
    CHECK(word == 99);
    CHECK(job[0].engine().confirmed(peer{1}) != engine::confirmation::under_way);
    operation asked;
    job[0].engine().confirm(asked, job[0].engine().meet(peer{1}));
    job.run();
    CHECK(asked.done());
    CHECK(job[0].engine().confirmed(peer{1}) == engine::confirmation::all);
    CHECK(job[0].engine().accessed().empty());
  }
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(job[r].engine().nothing_pending());
    CHECK(job[r].engine().counts().malformed == 0);
  }
}

TEST_CASE("what was done at once is confirmed only by the target", "[one_sided][engine]") {
  auto o = world_of(true, false);
  o.completes_at_once_ppm = 1'000'000;
  sim_job job(o);
  std::uint64_t word = 0, value = 7;
  const region there = register_memory(world_at(job, 1), &word, sizeof word);
  request writing = iput(world_at(job, 0), &value, sizeof value, rank{1}, there.key());
  REQUIRE(writing.done());
  CHECK(word == 0);
  CHECK(job[0].engine().confirmed(peer{1}) == engine::confirmation::unknown);
  operation asked;
  job[0].engine().confirm(asked, job[0].engine().meet(peer{1}));
  while (!asked.done()) turn(job);
  CHECK(word == 7);
}

TEST_CASE("a region that is withdrawn in the middle of a get ends it, and is not read any more",
          "[one_sided][engine]") {
  sim_job job(world_of(false, false));
  auto there = std::make_unique<std::vector<std::byte>>(100'000);
  std::optional<region> mine(register_memory(world_at(job, 1), *there));
  std::vector<std::byte> back(there->size());
  request reading = iget(world_at(job, 0), back.data(), back.size(), rank{1}, mine->key());
  std::vector<std::byte> out(100'000);
  request writing = iput(world_at(job, 2), out.data(), out.size(), rank{1}, mine->key());
  for (int i = 0; i < 100; ++i) turn(job);
  REQUIRE_FALSE(reading.done());
  REQUIRE_FALSE(writing.done());
  mine.reset();
  there.reset();
  job.run();
  CHECK(reading.wait(std::nothrow).error == errc::access_denied);
  CHECK(writing.wait(std::nothrow).error == errc::access_denied);
  CHECK(job[1].engine().nothing_pending());
  CHECK(job[0].engine().counts().malformed == 0);
}

TEST_CASE("a key of another rank is refused even where memory looks the same", "[one_sided][engine]") {
  const bool native = GENERATE(true, false);
  sim_job job(world_of(native, false));
  std::uint64_t word = 3, value = 9;  // one process: same address, same size, same slot
  const region at_one = register_memory(world_at(job, 1), &word, sizeof word);
  const region at_two = register_memory(world_at(job, 2), &word, sizeof word);
  request packets = ifetch_add(world_at(job, 0), 1, rank{2}, at_one.key(), 0, value);
  job.run();
  if (!native) CHECK(packets.wait(std::nothrow).error == errc::access_denied);
  if (!native) CHECK(word == 3);
  packets.wait(std::nothrow);
}

TEST_CASE("the death of the target ends what it was asked", "[one_sided][engine]") {
  const bool native = GENERATE(true, false);
  sim_job job(world_of(native, false));
  std::vector<std::byte> there(50'000), out(50'000);
  const region mine = register_memory(world_at(job, 1), there);
  std::deque<request> all;
  all.push_back(iput(world_at(job, 0), out.data(), out.size(), rank{1}, mine.key()));
  all.push_back(iget(world_at(job, 0), out.data(), 100, rank{1}, mine.key()));
  job.contexts[0]->progress(0);
  const step seen = job[0].engine().report(nullptr).at;  // what a long wait would tell
  CHECK((seen == step::native || seen == step::asking || seen == step::asked));
  job.world.kill(peer{1});
  job.run();
  for (request& r : all) {
    REQUIRE(r.done());
    CHECK(r.wait(std::nothrow).error == errc::peer_failed);
  }
  request late = iput(world_at(job, 0), out.data(), 1, rank{1}, mine.key());
  CHECK(late.wait(std::nothrow).error == errc::peer_failed);
  CHECK(job[0].engine().nothing_pending());
}
