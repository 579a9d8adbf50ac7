// Rule 1, 2 and 4 of the contract as far as packets go: sizes, contents, order, refusal.
#pragma once

#include "bench.hpp"

#include <algorithm>
#include <set>

namespace verbena::contract {

inline std::vector<std::size_t> interesting_sizes(const peer_limits& limits) {
  std::set<std::size_t> sizes;
  for (std::size_t s = 0; s <= 300; ++s) sizes.insert(s);
  for (std::size_t s = 256; s <= limits.packet_bytes; s *= 2)
    for (const std::size_t t : {s - 1, s, s + 1, s - 24, s - 40}) sizes.insert(t);
  for (const std::size_t around : {limits.packet_bytes, limits.eager_bytes, limits.inline_bytes})
    for (std::size_t down = 0; down < 3; ++down) sizes.insert(around - std::min(around, down));
  sizes.erase(sizes.upper_bound(limits.packet_bytes), sizes.end());
  return {sizes.begin(), sizes.end()};
}

/// Whether the packets `at` saw from `from`, behind the first `skip` of them, are first, first + 1, ...
/// in order, once each, with their contents.
inline void expect_sequence(report& to, recorder& at, std::uint32_t from, std::uint64_t first,
                            std::uint64_t count, const char* where) {
  std::uint64_t next = first;
  for (const event& e : at.events) {
    if (e.what != event::kind::packet || e.from != from) continue;
    to.expect(e.head.second == ~e.head.first, fmt::format("{}: an envelope is changed", where));
    to.expect(e.head.first == next,
              fmt::format("{}: packet {} came where {} was due", where, e.head.first, next));
    to.expect(matches(e.bytes, e.head.first), fmt::format("{}: packet {} of {} bytes has wrong contents",
                                                          where, e.head.first, e.bytes.size()));
    next = e.head.first + 1;
  }
  to.expect(next == first + count, fmt::format("{}: packets end at {}, not {}", where, next, first + count));
}

template <fabric_set Set>
void packets_of_all_sizes(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t from = 0, at = b.last();
  const auto sizes = interesting_sizes(b.at(from).limits(peer{at}));
  for (std::size_t i = 0; i < sizes.size(); ++i) b.send(from, at, i, sizes[i]);
  b.until([&] { return b.seen(at).packets() >= sizes.size(); }, "every packet arrives");
  b.settle();
  expect_sequence(to, b.seen(at), from, 0, sizes.size(), "all sizes");
  for (std::size_t i = 0; i < b.seen(at).events.size() && i < sizes.size(); ++i)
    to.expect(b.seen(at).events[i].bytes.size() == sizes[i],
              fmt::format("a packet of {} bytes changed its size", sizes[i]));
}

/// Small and large in turn, the receiver polling now and then only, so that queues fill, wrap and drain.
template <fabric_set Set>
void order_is_kept(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t from = 0, at = b.last();
  const std::size_t most = b.at(from).limits(peer{at}).packet_bytes;
  constexpr std::uint64_t count = 4000;
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::size_t size =
        n % 7 == 0 ? (n * 977) % (most + 1) : (n * 13) % std::min<std::size_t>(most, 200);
    b.send(from, at, n, size);
    if (n % 97 == 0) b.round();
  }
  b.until([&] { return b.seen(at).packets() >= count; }, "every packet arrives");
  b.settle();
  expect_sequence(to, b.seen(at), from, 0, count, "order");
}

template <fabric_set Set>
void both_directions_at_once(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t one = 0, two = b.last();
  constexpr std::uint64_t count = 1500;
  for (std::uint64_t n = 0; n < count; ++n) {
    b.send(one, two, n, (n * 31) % 240);
    if (one != two) b.send(two, one, n, (n * 57) % 240);
  }
  b.until([&] { return b.seen(one).packets() >= count && b.seen(two).packets() >= count; },
          "both sides get all");
  b.settle();
  expect_sequence(to, b.seen(two), one, 0, count, "forth");
  expect_sequence(to, b.seen(one), two, 0, count, "back");
}

/// Everybody to everybody; order holds per pair, and nobody's packets appear as another's.
template <fabric_set Set>
void many_peers(report& to) {
  bench<Set> b(9, to);
  constexpr std::uint64_t count = 120;
  for (std::uint64_t n = 0; n < count; ++n)
    for (std::uint32_t from = 0; from < b.size(); ++from)
      for (std::uint32_t step = 1; step < std::max(b.size(), 2U); ++step)
        b.send(from, (from + step) % b.size(), n, (n * 17 + from) % 240);
  const std::size_t each = count * std::max<std::size_t>(b.size() - 1, 1);
  b.until(
      [&] {
        for (std::uint32_t i = 0; i < b.size(); ++i)
          if (b.seen(i).packets() < each) return false;
        return true;
      },
      "everybody gets all");
  b.settle();
  for (std::uint32_t at = 0; at < b.size(); ++at) {
    to.expect(b.seen(at).packets() == each, "somebody got more than was sent");
    for (std::uint32_t from = 0; from < b.size(); ++from)
      if (from != at || b.size() == 1) expect_sequence(to, b.seen(at), from, 0, count, "many peers");
  }
}

/// Sends without anybody polling until it is refused; what was refused must not arrive, and the refusal ends
/// once the peer polls.
template <fabric_set Set>
void again_takes_nothing(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t from = 0, at = b.last();
  std::uint64_t taken = 0;
  for (int lap = 0; lap < 3; ++lap) {
    for (const std::size_t size : {std::size_t{200}, std::size_t{0}, std::size_t{40}}) {
      std::uint64_t refused = 0;
      for (std::uint64_t tries = 0; refused < 20 && tries < 1'000'000; ++tries) {
        const post_result result = b.try_send(from, at, taken, size);
        to.require(result != post_result::down, "send to a living peer answers down");
        (result == post_result::done ? taken : refused) += 1;
      }
      to.expect(refused == 20, "a peer that never polls is never refused: some queue has no bound");
    }
    b.until([&] { return b.seen(at).packets() >= taken; }, "what was taken arrives");
    b.send(from, at, taken++, 16);
    b.until([&] { return b.seen(at).packets() >= taken; }, "a send after the refusal arrives");
  }
  b.settle();
  expect_sequence(to, b.seen(at), from, 0, taken, "again");
}

/// The sender's and the receiver's state stay whole when a packet is sent in the midst of deliveries of all
/// kinds of sizes; here every packet is answered, as an engine does after its poll.
template <fabric_set Set>
void ping_pong(report& to) {
  bench<Set> b(2, to);
  const std::uint32_t one = 0, two = b.last();
  const std::size_t most = b.at(one).limits(peer{two}).packet_bytes;
  constexpr std::uint64_t count = 600;
  for (std::uint64_t n = 0; n < count; ++n) {
    b.send(one, two, n, (n * n * 31) % (most + 1));
    b.until([&] { return b.seen(two).packets() > (one == two ? 2 * n : n); }, "the ping arrives");
    if (one == two) {
      b.send(two, one, n, 8);
      b.until([&] { return b.seen(one).packets() > 2 * n + 1; }, "the pong arrives");
    } else {
      b.send(two, one, n, (n * 7) % (most + 1));
      b.until([&] { return b.seen(one).packets() > n; }, "the pong arrives");
    }
  }
  if (one != two) {
    expect_sequence(to, b.seen(two), one, 0, count, "ping");
    expect_sequence(to, b.seen(one), two, 0, count, "pong");
  }
}

}  // namespace verbena::contract
