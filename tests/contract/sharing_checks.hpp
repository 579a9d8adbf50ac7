// What a sharing fabric adds (fabric.hpp, sharing_fabric): offer, accept, withdraw.
#pragma once

#include "death_checks.hpp"

namespace verbena::contract {

template <class Set>
inline constexpr bool shares = transport::sharing_fabric<typename Set::fabric_type>;

/// A fabric may be able to share and not do it on this way (the kernel refuses, the user said no).
template <fabric_set Set>
bool sharing(bench<Set>& b) {
  return b.at(0).limits(peer{1}).bulk == transport::bulk_method::together;
}

template <fabric_set Set>
remote_key offered(bench<Set>& b, tracked& op, std::uint32_t from, std::uint32_t to,
                   std::span<std::byte> data) {
  remote_key ticket;
  const post_result result =
      b.post(op, [&](operation& o) { return b.at(from).offer(peer{to}, b.whole(data), ticket, o); });
  b.to().require(result == post_result::pending, "offer to a living peer is not pending");
  return ticket;
}

template <fabric_set Set>
void offers_move_bytes(report& to) {
  if constexpr (shares<Set>) {
    bench<Set> b(2, to);
    if (!sharing(b)) return;
    const std::uint32_t from = 0, at = b.last();
    std::uint64_t seed = 0;
    for (const std::size_t size :
         {1UL, 64UL, 4095UL, 65'536UL, 65'537UL, 300'001UL, 4UL << 20, (5UL << 20) + 3}) {
      auto source = b.make_memory(size), target = b.make_memory(size + 64);
      fill(source, ++seed);
      fill(target, 0);
      tracked &give = b.make_operation(from), &take = b.make_operation(at);
      const remote_key ticket = offered(b, give, from, at, source);
      for (std::uint64_t i = 0; i < seed % 3; ++i) b.round();  // the ticket takes its time
      const post_result result = b.post(take, [&](operation& o) {
        return b.at(at).accept(peer{from}, {target.data(), size}, ticket, o);
      });
      to.require(result == post_result::pending, "accept of a right ticket is not pending");
      b.until([&] { return give.ends == 1 && take.ends == 1; }, "both ends of a shared copy end");
      to.expect(give.op.result.error == errc::success && take.op.result.error == errc::success,
                "a shared copy ends with an error");
      to.expect(matches(target.first(size), seed), fmt::format("a shared copy of {} bytes is wrong", size));
      bool unharmed = true;
      for (std::size_t i = size; i < target.size(); ++i) unharmed = unharmed && target[i] == pattern(0, i);
      to.expect(unharmed, "a shared copy wrote behind its buffer");
    }
    to.expect(b.seen(at).events.empty(), "a shared copy raised an event");
  }
}

/// Offers without end are refused some time; accepted out of order, in both directions, all are right.
template <fabric_set Set>
void many_offers(report& to) {
  if constexpr (shares<Set>) {
    bench<Set> b(2, to);
    if (!sharing(b)) return;
    constexpr std::size_t size = 20'000;
    struct one {
      tracked *give, *take;
      remote_key ticket;
      std::span<std::byte> target;
      std::uint32_t from;
    };
    for (int lap = 0; lap < 3; ++lap) {
      std::vector<one> all;
      for (std::uint64_t n = 0; n < 60; ++n) {
        const auto from = static_cast<std::uint32_t>(n % 2);
        auto source = b.make_memory(size);
        fill(source, n);
        tracked& give = b.make_operation(from);
        const remote_key ticket = offered(b, give, from, 1 - from, source);
        all.push_back({&give, &b.make_operation(1 - from), ticket, b.make_memory(size), from});
      }
      for (std::size_t n = 0; n < all.size(); ++n) {
        one& x = all[(n * 37 + 11) % all.size()];
        const post_result result = b.post(*x.take, [&](operation& o) {
          return b.at(1 - x.from).accept(peer{x.from}, b.whole(x.target), x.ticket, o);
        });
        to.require(result == post_result::pending, "accept of a right ticket is not pending");
        if (n % 5 == 0) b.round();
      }
      for (std::size_t n = 0; n < all.size(); ++n) {
        one& x = all[n];
        b.until([&] { return x.give->ends == 1 && x.take->ends == 1; }, "both ends of a shared copy end");
        to.expect(x.take->op.result.error == errc::success && matches(x.target, n),
                  "one of many shared copies is wrong");
      }
    }
  }
}

template <fabric_set Set>
void forged_tickets_are_refused(report& to) {
  if constexpr (shares<Set>) {
    bench<Set> b(3, to);
    if (!sharing(b)) return;
    const std::uint32_t from = 0, at = 1;
    auto source = b.make_memory(5000), target = b.make_memory(5000);
    fill(source, 3);
    fill(target, 4);
    tracked& give = b.make_operation(from);
    const remote_key good = offered(b, give, from, at, source);
    std::vector<remote_key> wrong;
    for (int bit = 0; bit < 32; ++bit) {
      remote_key key = good;
      key.handle ^= 1U << bit;
      wrong.push_back(key);
    }
    wrong.push_back(remote_key{});
    for (const remote_key& key : wrong) {
      tracked& op = b.make_operation(at);
      to.expect(
          b.at(at).accept(peer{from}, b.whole(target), key, op.op) == post_result::down && !op.op.pending(),
          fmt::format("a forged ticket (handle {:#x}) is taken", key.handle));
    }
    for (const std::size_t size : {0UL, 4999UL}) {
      tracked& op = b.make_operation(at);
      to.expect(b.at(at).accept(peer{from}, {target.data(), size}, good, op.op) == post_result::down,
                "a ticket is taken for a wrong size");
    }
    tracked& thief = b.make_operation(2);
    to.expect(b.at(2).accept(peer{1}, b.whole(target), good, thief.op) == post_result::down,
              "a ticket is taken for another peer's");
    b.settle();
    to.expect(matches(target, 4) && give.ends == 0, "a forged ticket had an effect");
    tracked& take = b.make_operation(at);
    b.post_and_finish(
        take, [&](operation& o) { return b.at(at).accept(peer{from}, b.whole(target), good, o); }, "accept");
    b.until([&] { return give.ends == 1; }, "the offer ends");
    to.expect(matches(target, 3), "the right ticket does not work after forged ones");
    tracked& twice = b.make_operation(at);
    to.expect(b.at(at).accept(peer{from}, b.whole(target), good, twice.op) == post_result::down,
              "a ticket is taken twice");
  }
}

template <fabric_set Set>
void withdrawn_offers_are_gone(report& to) {
  if constexpr (shares<Set>) {
    bench<Set> b(2, to);
    if (!sharing(b)) return;
    auto source = b.make_memory(3000), target = b.make_memory(3000);
    fill(source, 1);
    fill(target, 2);
    remote_key last;
    for (int i = 0; i < 2000; ++i) {  // descriptors come back
      tracked& give = b.make_operation(0);
      const remote_key ticket = offered(b, give, 0, 1, source);
      tracked& take = b.make_operation(1);
      if (i % 2 == 1)
        to.expect(b.at(1).accept(peer{0}, b.whole(target), last, take.op) == post_result::down,
                  "an old ticket opens a new offer");
      to.expect(b.at(0).withdraw(peer{1}, ticket), "an offer that nobody took cannot be withdrawn");
      to.expect(!b.at(0).withdraw(peer{1}, ticket), "an offer is withdrawn twice");
      to.expect(give.ends == 0, "withdraw completed the operation");
      to.expect(b.at(1).accept(peer{0}, b.whole(target), ticket, take.op) == post_result::down,
                "a withdrawn ticket is taken");
      last = ticket;
    }
    b.settle();
    to.expect(matches(target, 2), "a withdrawn offer moved bytes");

    tracked& give = b.make_operation(0);
    tracked& take = b.make_operation(1);
    const remote_key ticket = offered(b, give, 0, 1, source);
    to.expect(b.at(1).accept(peer{0}, b.whole(target), ticket, take.op) == post_result::pending,
              "an offer behind withdrawn ones is not taken");
    to.expect(!b.at(0).withdraw(peer{1}, ticket), "an offer that was accepted is withdrawn");
    b.settle();
    to.expect(give.ends == 1 && take.ends == 1 && matches(target, 1), "an offer withdrawn too late does not end");
  }
}

template <fabric_set Set>
void a_death_while_sharing(report& to) {
  if constexpr (shares<Set> && Set::can_kill)
    for (const bool giver_dies : {true, false})
      for (const int rounds : {0, 1, 2, 4, 8, 100}) {
        bench<Set> b(3, to);
        if (!sharing(b)) return;
        const std::uint32_t victim = giver_dies ? 0 : 1, survivor = 1 - victim;
        auto source = b.make_memory(3 << 20), target = b.make_memory(3 << 20);
        fill(source, 1);
        tracked &give = b.make_operation(0), &take = b.make_operation(1), &open = b.make_operation(survivor);
        const remote_key ticket = offered(b, give, 0, 1, source);
        offered(b, open, survivor, victim, b.make_memory(70'000));  // never accepted
        to.require(
            b.post(take, [&](operation& o) { return b.at(1).accept(peer{0}, b.whole(target), ticket, o); }) ==
                post_result::pending,
            "accept of a right ticket is not pending");
        for (int i = 0; i < rounds; ++i) b.round();
        tracked& mine = giver_dies ? take : give;
        bool ended_first = false;
        b.seen(survivor).look = [&](const event& e) {
          if (e.what == event::kind::down) ended_first = mine.ends == 1 && open.ends == 1;
        };
        b.kill(victim);
        b.until([&] { return downs_of(b.seen(survivor), victim) == 1; }, "a death is reported");
        b.seen(survivor).look = nullptr;
        to.expect(ended_first, "a shared copy with the dead is pending when its death is reported");
        const errc error = mine.op.result.error;
        to.expect(error == errc::peer_failed || (error == errc::success && matches(target, 1)),
                  "a shared copy with the dead ends wrongly");
        to.expect(open.op.result.error == errc::peer_failed,
                  "an offer to the dead does not end with peer_failed");
        tracked& more = b.make_operation(survivor);
        remote_key none;
        to.expect(b.at(survivor).offer(peer{victim}, b.whole(source), none, more.op) == post_result::down,
                  "offer to the dead does not answer down");
      }
}

}  // namespace verbena::contract
