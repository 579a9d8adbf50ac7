// The budget for unexpected messages: its arithmetic, the queue behind the matcher, and the protocol over
// simulated fabrics.
#include "tests/unit/simulated_job.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <random>

using namespace verbena;
using namespace verbena::runtime;
using tests::pattern;
using tests::simulated_job;
using tests::world_of;
namespace sim = verbena::transport::sim;

TEST_CASE("a sender's budget goes down by what it sends and up by honest reports only", "[budget]") {
  constexpr std::uint64_t budget = 10'000;
  send_budget mine{.left = budget};
  CHECK(mine.covers(budget - message_overhead));
  CHECK_FALSE(mine.covers(budget - message_overhead + 1));
  CHECK_FALSE(mine.report(1, budget));  // nothing was sent
  mine.spend(1000);
  mine.spend(0);
  CHECK(mine.left == budget - 1000 - 2 * message_overhead);
  CHECK(mine.report(1000 + message_overhead, budget));
  CHECK(mine.left == budget - message_overhead);
  CHECK_FALSE(mine.report(1000, budget));                         // less than before
  CHECK_FALSE(mine.report(1001 + 2 * message_overhead, budget));  // more than was sent
  CHECK_FALSE(mine.report(~std::uint64_t{0}, budget));
  CHECK(mine.left == budget - message_overhead);
  CHECK(mine.report(1000 + 2 * message_overhead, budget));
  CHECK(mine.left == budget);
  CHECK_FALSE(send_budget{}.covers(0));
}

TEST_CASE("the queue behind the matcher finds what a plain list finds", "[budget]") {
  std::mt19937 random(7);
  envelope_queue queue;
  std::deque<match_key> naive;
  std::deque<std::uint64_t> numbers;
  const auto matches = [](const match_key& is, const match_key& want) {
    return is.context == want.context && (want.source == any_source || is.source == want.source) &&
           (want.label == any_tag || is.label == want.label);
  };
  const auto below = [&](unsigned bound) { return static_cast<int>(random() % bound); };
  for (std::uint64_t i = 0; i < 40'000; ++i) {
    if (below(100) < (i % 8000 < 4000 ? 70 : 30)) {
      queued_envelope e;
      e.is = {static_cast<std::uint32_t>(below(2)), rank{below(3)}, tag{below(20)}};
      e.what = queued_envelope::kind::envelope;
      e.total = i;
      queue.push(e);
      naive.push_back(e.is);
      numbers.push_back(i);
    } else {
      const match_key want{static_cast<std::uint32_t>(below(2)), rank{below(4) - 1}, tag{below(21) - 1}};
      const auto at =
          std::find_if(naive.begin(), naive.end(), [&](const match_key& is) { return matches(is, want); });
      queued_envelope* found = queue.find(want);
      REQUIRE((found == nullptr) == (at == naive.end()));
      if (found == nullptr) continue;
      REQUIRE(found->total == numbers[static_cast<std::size_t>(at - naive.begin())]);
      queue.remove(*found);
      numbers.erase(numbers.begin() + (at - naive.begin()));
      naive.erase(at);
    }
    REQUIRE(queue.size() == naive.size());
    if (!naive.empty()) REQUIRE(queue.front().total == numbers.front());
  }
}

TEST_CASE("messages far over the budget keep their order, their bytes and their sizes", "[budget]") {
  sim::world_options o =
      world_of(GENERATE(transport::bulk_method::put, transport::bulk_method::stream), 512, 2000);
  o.jitter = 20'000;
  o.again_ppm = GENERATE(0U, 300'000U);
  base::settings settings;
  settings.unexpected_budget = GENERATE(0U, 300U, 3000U, 40'000U);
  const bool truncate = GENERATE(false, true);
  simulated_job job(o, settings);
  constexpr std::size_t count = 400;
  std::mt19937 random(3);
  std::vector<std::vector<std::byte>> data, into;
  std::vector<int> labels;
  std::deque<operation> sent(count), received(count);
  for (std::size_t i = 0; i < count; ++i) {
    data.push_back(pattern(random() % 10 == 0 ? random() % 5000 : random() % 60, static_cast<unsigned>(i)));
    labels.push_back(static_cast<int>(random() % 3));
  }
  for (std::size_t i = 0; i < count; ++i) {
    job.send(sent[i], 0, 1, data[i], labels[i]);
    if (i % 50 == 0) job.run();
  }
  job.run();
  // In any order of tags, with wildcards between: each tag's messages come in the order sent.
  std::vector<bool> taken(count, false);
  for (std::size_t n = 0; n < count; ++n) {
    std::size_t some = random() % count;
    while (taken[some]) some = (some + 1) % count;
    const tag want = n % 7 == 0 ? any_tag : tag{labels[some]};
    std::size_t expected = 0;
    while (taken[expected] || (want != any_tag && tag{labels[expected]} != want)) ++expected;
    taken[expected] = true;
    const std::size_t room = truncate && n % 5 == 0 ? data[expected].size() / 2 : 6000;
    std::vector<std::byte> window(room);
    job.receive(received[n], 1, n % 3 == 0 ? any_source : rank{0}, window, want);
    job.run();
    INFO("receive " << n << " of message " << expected << " budget " << settings.unexpected_budget);
    REQUIRE(received[n].done());
    REQUIRE(received[n].result.sent_bytes == data[expected].size());
    REQUIRE(received[n].result.label == tag{labels[expected]});
    if (room >= data[expected].size()) {
      REQUIRE(received[n].result.error == errc::success);
      REQUIRE(std::equal(data[expected].begin(), data[expected].end(), window.begin()));
    } else {
      REQUIRE(received[n].result.error == errc::truncated);
    }
  }
  for (const operation& op : sent) REQUIRE(op.done());
  CHECK(job.contexts[0]->engine().nothing_pending());
  CHECK(job.contexts[1]->engine().nothing_pending());
  CHECK(job.contexts[0]->engine().counts().over_budget > 0);
  CHECK(job.contexts[0]->engine().counts().malformed == 0);
  CHECK(job.contexts[1]->engine().counts().malformed == 0);
  // Everything is out of the way: the sender hears of it, sooner or later, and sends without asking again.
  if (settings.unexpected_budget < 3000) return;
  const auto spent = job.contexts[0]->engine().counts().over_budget;
  for (int i = 0; i < 1000; ++i) {
    operation s, r;
    std::vector<std::byte> room(8);
    job.receive(r, 1, rank{0}, room, tag{0});
    job.send(s, 0, 1, room, 0);
    job.run();
    REQUIRE(r.done());
  }
  CHECK(job.contexts[0]->engine().counts().over_budget <= spent + 1);
  CHECK(job.contexts[1]->engine().counts().grants > 0);
}

TEST_CASE("messages taken at once cost few reports", "[budget]") {
  simulated_job job(world_of(transport::bulk_method::put, 4096, 4096));
  constexpr int count = 20'000;
  const auto data = pattern(8, 1);
  std::vector<std::byte> room(8);
  for (int i = 0; i < count; ++i) {
    operation s, r;
    job.receive(r, 1, rank{0}, room, tag{0});
    job.send(s, 0, 1, data, 0);
    job.run();
    REQUIRE(r.done());
  }
  const auto grants = job.contexts[1]->engine().counts().grants;
  CHECK(grants > 0);
  CHECK(grants <= count * charge_of(8) / (2U << 20));
  CHECK(job.contexts[0]->engine().counts().over_budget == 0);
}

TEST_CASE("a synchronous send is over when it is matched, not before", "[budget][engine]") {
  base::settings settings;
  settings.unexpected_budget = GENERATE(0U, 1U << 20);
  const bool receive_first = GENERATE(false, true);
  const std::uint32_t to = GENERATE(0U, 1U);
  sim::world_options o =
      world_of(GENERATE(transport::bulk_method::put, transport::bulk_method::stream), 512, 2000);
  o.again_ppm = GENERATE(0U, 300'000U);
  simulated_job job(o, settings);
  for (const std::size_t size : {0u, 8u, 496u, 512u, 1999u, 9000u}) {
    INFO("size " << size);
    const auto data = pattern(size, 3);
    std::vector<std::byte> into(size);
    operation sent, received;
    if (receive_first) job.receive(received, to, rank{0}, into, tag{5});
    communicator_state& world = job.contexts[0]->world();
    job.contexts[0]->engine().send(sent, world.way_to(rank{to}), data.data(), size, tag{5}, true);
    job.run();
    if (!receive_first) {
      CHECK_FALSE(sent.done());
      job.receive(received, to, rank{0}, into, tag{5});
      job.run();
    }
    REQUIRE(sent.done());
    REQUIRE(received.done());
    CHECK(sent.result.error == errc::success);
    CHECK(received.result.error == errc::success);
    CHECK(into == data);
  }
  CHECK(job.contexts[0]->engine().nothing_pending());
  CHECK(job.contexts[1]->engine().nothing_pending());
}

TEST_CASE("a peer that ignores its budget finds its messages refused, and the receives know", "[budget]") {
  sim::sim_world world(world_of(transport::bulk_method::put, 4096, 1U << 20));
  in_process_job job(2, false);
  sim::sim_fabric hostile(world, peer{0});
  base::settings settings;
  settings.unexpected_budget = 10'000;
  auto target =
      context_state::join(job.member(1), settings, std::make_unique<sim::sim_fabric>(world, peer{1}));
  hostile.attach(peer{1}, {});
  const auto fits = hard_limit(settings.unexpected_budget) / charge_of(4000);
  transport::null_sink ears;
  std::uint64_t sent = 0;
  while (sent < fits + 10) {
    const auto head = wire::pack(wire::kind::eager, target->world().context(), 0, 1);
    if (hostile.send(peer{1}, head, 4000, [](std::byte* at) { std::fill_n(at, 4000, std::byte{7}); }) ==
        transport::post_result::done)
      ++sent;
    hostile.poll(world.now(), ears);
    target->progress(world.now());
    world.step();
  }
  for (int i = 0; i < 100; ++i) {
    world.step();
    target->progress(world.now());
  }
  CHECK(target->engine().counts().malformed == 10);
  std::uint64_t good = 0, refused = 0;
  for (std::uint64_t i = 0; i < sent; ++i) {
    operation op;
    std::vector<std::byte> into(4000);
    const peer from{0};
    target->engine().receive(op, &from, {target->world().context(), rank{0}, tag{1}}, into.data(),
                             into.size());
    REQUIRE(op.done());
    if (op.result.error == errc::success)
      ++good;
    else if (op.result.error == errc::malformed)
      ++refused;
  }
  CHECK(good == fits);
  CHECK(refused == 10);
}
