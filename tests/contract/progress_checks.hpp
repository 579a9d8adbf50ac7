// Polling: what it may report and when, that it is bounded, that a rank about to sleep is told the truth; and
// the limits a fabric states.
#pragma once

#include "packet_checks.hpp"

namespace verbena::contract {

template <fabric_set Set>
void limits_are_sane(report& to) {
  bench<Set> b(3, to);
  for (std::uint32_t i = 0; i < b.size(); ++i) {
    const std::uint32_t other = (i + 1) % b.size();
    to.expect(b.at(i).attach(peer{other}, b.at(other).address()), "attach to a living peer fails");
    to.expect(!std::string(b.at(i).explain(peer{other})).empty(), "explain has nothing to say");
    const peer_limits limits = b.at(i).limits(peer{other});
    to.expect(limits.packet_bytes >= transport::control_packet_bytes - sizeof(envelope),
              "packet_bytes is too small for a control packet");
    to.expect(limits.packet_bytes < 1U << 30, "packet_bytes is absurd");
    to.expect(limits.inline_bytes <= limits.packet_bytes, "inline_bytes exceeds packet_bytes");
    to.expect(limits.eager_bytes > 0, "nothing is eager");
    to.expect(limits.latency_us > 0 && limits.bandwidth_gbs > 0, "latency and bandwidth are not positive");
    to.expect(limits.bulk != transport::bulk_method::put || limits.native_put,
              "bulk is put and put is not native");
    to.expect(limits.bulk != transport::bulk_method::together ||
                  transport::sharing_fabric<typename Set::fabric_type>,
              "bulk is together and the fabric does not share");
  }
}

/// When nothing is under way, polls report nothing; when something is, they say so.
template <fabric_set Set>
void poll_counts_events(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t at = b.last();
  b.settle();
  to.expect(b.poll(at) == 0, "poll finds something where nothing is");
  b.send(0, at, 0, 30);
  b.until([&] { return b.seen(at).packets() == 1; }, "a packet arrives");
  b.settle();
  to.expect(b.seen(at).events.size() == 1, "one packet, several events");
  to.expect(b.poll(at) == 0, "poll finds something where nothing is");
}

/// Nothing is delivered inside send: not what one sends oneself, not what lies there from others.
template <fabric_set Set>
void nothing_inside_send(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t one = 0, two = b.last();
  for (std::uint64_t n = 0; n < 50; ++n) {
    b.settle();
    b.try_send(one, two, n, 24);
    b.try_send(two, one, n, 24);
    while (b.set().pass_time()) {
    }
    const std::size_t before = b.seen(one).events.size() + b.seen(two).events.size();
    b.try_send(one, two, n, 24);
    b.try_send(two, one, n, 24);
    to.expect(b.seen(one).outside_poll + b.seen(two).outside_poll == 0, "a packet was delivered inside send");
    to.expect(b.seen(one).events.size() + b.seen(two).events.size() == before, "events came without a poll");
  }
  b.settle();
  to.expect(!b.seen(two).events.empty(), "nothing arrived at all");
}

template <fabric_set Set>
void poll_from_is_about_one_peer(report& to) {
  bench<Set> b(3, to);
  if (b.size() < 3) return;
  constexpr std::uint64_t count = 40;
  for (std::uint64_t lap = 0; lap < 3; ++lap) {
    for (std::uint64_t n = 0; n < count; ++n) {
      b.send(0, 2, lap * count + n, 20);
      b.send(1, 2, lap * count + n, 20);
    }
    auto from = [&](std::uint32_t who) {
      return static_cast<std::uint64_t>(std::count_if(b.seen(2).events.begin(), b.seen(2).events.end(),
                                                      [&](const event& e) { return e.from == who; }));
    };
    const std::uint64_t of_one = from(1);  // polls while sending may have brought some
    const std::uint64_t due = (lap + 1) * count;
    for (int spins = 0; from(0) < due && spins < 100'000; ++spins)
      if (b.poll_from(2, 0) == 0) b.set().pass_time();
    to.expect(from(0) == due, "poll_from does not bring what its peer sent");
    to.expect(from(1) == of_one, "poll_from brings what another peer sent");
    b.until([&] { return from(1) == due; }, "poll brings the rest");
  }
  expect_sequence(to, b.seen(2), 0, 0, 3 * count, "poll_from, its peer");
  expect_sequence(to, b.seen(2), 1, 0, 3 * count, "poll_from, another peer");
}

/// arm() is true on a quiet fabric, and false while something waits to be polled: for a peer that never sent
/// before, for one that did, and for one whose last packet is long ago.
template <fabric_set Set>
void arm_sees_what_is_there(report& to) {
  bench<Set> b(3, to);
  const std::uint32_t at = b.last();
  for (int lap = 0; lap < 4; ++lap) {
    for (std::uint32_t from = 0; from < std::max(b.last(), 1U); ++from) {
      b.settle();
      to.expect(b.at(at).arm(), "arm sees something where nothing is");
      b.at(at).disarm();
      b.send(from, at, static_cast<std::uint64_t>(lap), lap % 2 == 0 ? 8 : 100);
      while (b.set().pass_time()) {
      }
      to.expect(!b.at(at).arm(), "arm does not see what is there");
      b.at(at).disarm();
      const std::size_t before = b.seen(at).packets();
      b.until([&] { return b.seen(at).packets() == before + 1; }, "a packet sent to an armed fabric arrives");
    }
  }
}

/// The most events one poll may report, as the suite reads "bounded".
inline constexpr std::size_t most_events_per_poll = 1024;

template <fabric_set Set>
void poll_is_bounded(report& to) {
  bench<Set> b(4, to);
  const std::uint32_t at = b.last();
  std::uint64_t sent = 0;
  for (std::uint32_t from = 0; from < std::max(b.last(), 1U); ++from) {
    std::uint64_t of_this = 0;
    for (int refused = 0; refused < 5 && of_this < 20'000;)
      if (b.try_send(from, at, of_this, 0) == post_result::done)
        ++of_this;
      else
        ++refused;
    sent += of_this;
  }
  while (b.set().pass_time()) {
  }
  std::size_t polls = 0;
  while (b.seen(at).packets() < sent) {
    const std::size_t before = b.seen(at).packets();
    b.poll(at);
    const std::size_t got = b.seen(at).packets() - before;
    to.expect(got <= most_events_per_poll, fmt::format("one poll reported {} of {} packets", got, sent));
    if (got == 0 && !b.set().pass_time()) to.require(++polls < 10'000, "a flood is not delivered");
  }
}

}  // namespace verbena::contract
