// Rule 6: the death of a peer, at any moment. What is pending there ends before the news, the news comes once
// and last, nothing it started writes here any more, and nobody else is disturbed.
#pragma once

#include "one_sided_checks.hpp"

namespace verbena::contract {

inline std::size_t downs_of(recorder& at, std::uint32_t who) {
  return static_cast<std::size_t>(std::count_if(at.events.begin(), at.events.end(), [&](const event& e) {
    return e.what == event::kind::down && e.from == who;
  }));
}

/// Endpoint 2 dies after `rounds` rounds, with traffic of all kinds under way in all directions.
template <fabric_set Set>
void one_death(report& to, int rounds) {
  constexpr std::uint32_t victim = 2;
  bench<Set> b(4, to);
  const bool puts = b.at(0).limits(peer{victim}).native_put;
  auto here = b.make_memory(70'000), there = b.make_memory(70'000), source = b.make_memory(70'000);
  fill(source, 1);
  typename Set::fabric_type::region here_region, there_region, source_region;
  if (puts) {
    here_region = b.registered(0, here);
    there_region = b.registered(victim, there);
    source_region = b.registered(0, source);
  }
  std::vector<std::pair<tracked*, bool>> pending;  // of endpoint 0 at the victim
  for (std::uint64_t n = 0; n < 12; ++n) {
    b.send(victim, 0, n, n * 19);
    b.send(0, victim, n, n * 7);
    b.send(0, 1, n, 30);
    if (!puts) continue;
    const buffer local{source.data(), n % 3 == 0 ? 65'000 : n * 40};
    tracked& op = b.make_operation(0);
    const post_result result = b.post(op, [&](operation& o) {
      return n % 2 == 0 ? b.at(0).put(peer{victim}, local, there_region.key(), 0, o)
                        : b.at(0).get(peer{victim}, local, there_region.key(), 0, o);
    });
    pending.emplace_back(&op, result == post_result::pending);
    tracked& theirs = b.make_operation(victim);
    b.post(theirs,
           [&](operation& o) { return b.at(victim).put(peer{0}, b.whole(there), here_region.key(), 0, o); });
  }
  for (int i = 0; i < rounds; ++i) b.round();

  bool ended_first = true;
  std::vector<std::byte> snapshot;
  b.seen(0).look = [&](const event& e) {
    if (e.what != event::kind::down) return;
    for (const auto& [op, was_pending] : pending)
      ended_first = ended_first && (!was_pending || op->ends == 1);
    snapshot.assign(here.begin(), here.end());
  };
  b.kill(victim);
  b.until([&] { return downs_of(b.seen(0), victim) > 0 && downs_of(b.seen(1), victim) > 0; },
          "everybody hears of a death");
  b.seen(0).look = nullptr;
  to.expect(ended_first, "an operation at the dead is still pending when its death is reported");
  for (const auto& [op, was_pending] : pending) {
    const errc error = op->op.result.error;
    if (was_pending)
      to.expect(error == errc::success || error == errc::peer_failed,
                "an operation at the dead ends wrongly");
  }

  to.expect(b.try_send(0, victim, 99, 8) == post_result::down, "send to the dead does not answer down");
  if (puts) {
    tracked &op = b.make_operation(0), &second = b.make_operation(0);
    const buffer local{source.data(), 64};
    to.expect(b.at(0).put(peer{victim}, local, there_region.key(), 0, op.op) == post_result::down,
              "put to the dead does not answer down");
    to.expect(b.at(0).get(peer{victim}, local, there_region.key(), 0, second.op) == post_result::down,
              "get from the dead does not answer down");
    to.expect(!op.op.pending() && !second.op.pending() && op.ends + second.ends == 0,
              "a post that answers down touched its operation");
  }
  b.send(0, 1, 12, 30);
  b.send(1, 0, 0, 30);
  b.until([&] { return b.seen(1).packets() == 13; }, "the living go on");
  b.settle();
  to.expect(snapshot.size() == here.size() && std::equal(here.begin(), here.end(), snapshot.begin()),
            "the dead wrote into memory after its death was reported");
  expect_sequence(to, b.seen(1), 0, 0, 13, "between the living");
  for (const std::uint32_t i : {0U, 1U, 3U})
    to.expect(downs_of(b.seen(i), victim) <= 1, "a death is reported twice");

  std::uint64_t next = 0;
  bool buried = false;
  for (const event& e : b.seen(0).events) {
    if (e.from != victim) continue;
    to.expect(!buried, "the dead is heard of after its death was reported");
    if (e.what == event::kind::packet)
      to.expect(e.head.first == next++ && matches(e.bytes, e.head.first), "a dying peer's packets have gaps");
    if (e.what == event::kind::down) {
      buried = true;
      to.expect(e.why == errc::peer_failed, "a death is not reported as peer_failed");
    }
  }
}

template <fabric_set Set>
void a_death_at_any_moment(report& to) {
  if constexpr (Set::can_kill)
    for (const int rounds : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 200}) one_death<Set>(to, rounds);
}

template <fabric_set Set>
void two_deaths(report& to) {
  if constexpr (Set::can_kill) {
    bench<Set> b(4, to);
    for (std::uint64_t n = 0; n < 5; ++n)
      for (std::uint32_t from = 0; from < 4; ++from)
        for (std::uint32_t other = 0; other < 4; ++other)
          if (from != other) b.send(from, other, n, 20);
    b.kill(1);
    b.kill(2);
    b.until(
        [&] {
          for (const std::uint32_t i : {0U, 3U})
            if (downs_of(b.seen(i), 1) == 0 || downs_of(b.seen(i), 2) == 0) return false;
          return true;
        },
        "two deaths are reported");
    b.send(0, 3, 5, 20);
    b.send(3, 0, 5, 20);
    b.settle();
    for (const std::uint32_t i : {0U, 3U}) {
      to.expect(downs_of(b.seen(i), 1) == 1 && downs_of(b.seen(i), 2) == 1, "a death is reported twice");
      expect_sequence(to, b.seen(i), 3 - i, 0, 6, "between the living");
    }
  }
}

}  // namespace verbena::contract
