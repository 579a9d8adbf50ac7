// put, get, put_with_flag, atomics and registrations: contents, visibility, refusal of wrong keys.
#pragma once

#include "packet_checks.hpp"

namespace verbena::contract {

inline const std::size_t one_sided_sizes[] = {0,    1,    7,    8,    40,    41,      64,       65,
                                              4095, 4096, 8192, 8193, 65536, 100'000, 1'000'003};

template <fabric_set Set>
bool native(bench<Set>& b) {
  return b.at(0).limits(peer{b.last()}).native_put;
}

/// Contents; neighbours unharmed; and `done` means the source may change at once.
template <fabric_set Set>
void put_and_get_move_bytes(report& to) {
  bench<Set> b(2, to);
  if (!native(b)) return;
  const std::uint32_t at = b.last();
  std::uint64_t seed = 1;
  for (const std::size_t size : one_sided_sizes) {
    auto target = b.make_memory(size + 32), source = b.make_memory(size + 1), back = b.make_memory(size + 1);
    const auto region = b.registered(at, target);
    const auto local_region = b.registered(0, source), back_region = b.registered(0, back);
    fill(target, 0);
    fill(source, ++seed);
    tracked& put = b.make_operation(0);
    const buffer local{source.data(), size};
    const post_result result =
        b.post(put, [&](operation& op) { return b.at(0).put(peer{at}, local, region.key(), 16, op); });
    to.require(result != post_result::down, "put to a living peer answers down");
    const std::uint64_t sent = seed;
    if (result == post_result::done) fill(source, ++seed);
    b.finish(put, result, "put");
    // `done` promises nothing about delivery: a packet behind the put does.
    const std::size_t before = b.seen(at).packets();
    b.send(0, at, seed, 4);
    b.until([&] { return b.seen(at).packets() > before; }, "the packet behind a put arrives");
    to.expect(matches(target.subspan(16, size), sent),
              fmt::format("a put of {} bytes has wrong contents", size));
    bool outside = true;
    for (std::size_t i = 0; i < target.size(); ++i)
      outside = outside && ((i >= 16 && i < 16 + size) || target[i] == pattern(0, i));
    to.expect(outside, fmt::format("a put of {} bytes wrote outside its range", size));

    tracked& get = b.make_operation(0);
    b.post_and_finish(
        get,
        [&](operation& op) {
          return b.at(0).get(peer{at}, {back.data(), size}, region.key(), 16, op);
        },
        "get");
    to.expect(matches(back.first(size), sent), fmt::format("a get of {} bytes has wrong contents", size));
  }
}

/// A packet posted after a put, before the put has ended, finds the data in place.
template <fabric_set Set>
void packet_follows_put(report& to) {
  bench<Set> b(2, to);
  if (!native(b)) return;
  const std::uint32_t at = b.last();
  for (std::uint64_t n = 1; n <= 60; ++n) {
    const std::size_t size = n % 5 == 0 ? 200'000 : n * 97;
    auto target = b.make_memory(size), source = b.make_memory(size);
    const auto region = b.registered(at, target);
    const auto local_region = b.registered(0, source);
    fill(source, n);
    bool seen_data = false;
    b.seen(at).look = [&](const event& e) {
      if (e.what == event::kind::packet && e.head.first == n) seen_data = matches(target, n);
    };
    tracked& put = b.make_operation(0);
    const post_result result = b.post(
        put, [&](operation& op) { return b.at(0).put(peer{at}, b.whole(source), region.key(), 0, op); });
    b.send(0, at, n, 8);
    const std::size_t due = n;
    b.until([&] { return b.seen(at).packets() == due; }, "the packet behind a put arrives");
    b.finish(put, result, "put");
    b.seen(at).look = nullptr;
    to.expect(seen_data, fmt::format("a packet overtook a put of {} bytes posted before it", size));
  }
}

template <fabric_set Set>
void flag_follows_its_put(report& to) {
  bench<Set> b(2, to);
  if (!native(b)) return;
  const std::uint32_t at = b.last();
  for (std::uint64_t n = 1; n <= 60; ++n) {
    const std::size_t size = n % 5 == 0 ? 150'000 : (n - 1) * 61;
    auto target = b.make_memory(size), source = b.make_memory(size);
    const auto region = b.registered(at, target);
    const auto local_region = b.registered(0, source);
    fill(source, n);
    bool seen_data = false;
    b.seen(at).look = [&](const event& e) {
      if (e.what == event::kind::flag) seen_data = e.word == n * 0x100000001ULL && matches(target, n);
    };
    tracked& put = b.make_operation(0);
    b.post_and_finish(
        put,
        [&](operation& op) {
          return b.at(0).put_with_flag(peer{at}, b.whole(source), region.key(), 0, n * 0x100000001ULL, op);
        },
        "put_with_flag");
    b.until([&] { return b.seen(at).count(event::kind::flag) == n; }, "the flag arrives");
    b.settle();
    b.seen(at).look = nullptr;
    to.expect(b.seen(at).count(event::kind::flag) == n, "a flag arrived more than once");
    to.expect(seen_data, fmt::format("a flag is wrong, or came before its {} bytes were visible", size));
  }
  to.expect(b.seen(at).packets() == 0, "a flag arrived as a packet");
}

template <fabric_set Set>
void atomics_are_atomic(report& to) {
  bench<Set> b(4, to);
  const std::uint32_t at = b.last();
  if (!b.at(0).limits(peer{at}).native_atomics) return;
  alignas(8) static thread_local std::uint64_t words[4];
  std::fill_n(words, 4, 0);
  words[1] = 1'000'000'007;
  auto region = b.registered(at, {reinterpret_cast<std::byte*>(words), sizeof words});
  constexpr std::uint64_t rounds = 50;
  std::vector<std::uint64_t> old(rounds * b.size());
  std::vector<std::pair<tracked*, post_result>> posted;
  const std::uint32_t posters = std::max(b.last(), 1U);
  for (std::uint64_t n = 0; n < rounds; ++n)
    for (std::uint32_t i = 0; i < posters; ++i) {
      tracked& op = b.make_operation(i);
      const buffer result{reinterpret_cast<std::byte*>(&old[n * posters + i]), 8};
      posted.emplace_back(&op, b.post(op, [&](operation& o) {
        return b.at(i).fetch_add(peer{at}, result, region.key(), 8, 3, o);
      }));
    }
  for (auto& [op, result] : posted) {
    to.require(result != post_result::down, "fetch_add to a living peer answers down");
    b.finish(*op, result, "fetch_add");
  }
  const std::uint64_t total = rounds * posters;
  old.resize(total);
  std::sort(old.begin(), old.end());
  for (std::uint64_t n = 0; n < total; ++n)
    to.expect(old[n] == 1'000'000'007 + 3 * n, "fetch_add returned a wrong old value");
  to.expect(words[1] == 1'000'000'007 + 3 * total, "fetch_add left a wrong sum");
  to.expect(words[0] == 0 && words[2] == 0, "fetch_add wrote beside its word");

  for (const bool equal : {true, false}) {
    words[2] = 42;
    std::uint64_t before = 0;
    tracked& op = b.make_operation(0);
    b.post_and_finish(
        op,
        [&](operation& o) {
          return b.at(0).compare_swap(peer{at}, {reinterpret_cast<std::byte*>(&before), 8}, region.key(), 16,
                                      equal ? 42 : 43, 99, o);
        },
        "compare_swap");
    to.expect(before == 42, "compare_swap returned a wrong old value");
    to.expect(words[2] == (equal ? 99U : 42U), "compare_swap did the wrong thing");
  }
}

/// A key that was never given, is out of range or revoked ends the operation with access_denied at its
/// poster, touches nothing, raises no flag, and disturbs nobody.
template <fabric_set Set>
void wrong_keys_are_refused(report& to) {
  bench<Set> b(2, to);
  if (!native(b)) return;
  const std::uint32_t at = b.last();
  auto target = b.make_memory(4096), source = b.make_memory(64);
  fill(target, 5);
  auto region = b.registered(at, target);
  const auto local_region = b.registered(0, source);
  const remote_key good = region.key();

  std::vector<std::pair<remote_key, std::uint64_t>> wrong;
  for (const std::uint64_t offset :
       {std::uint64_t{4096 - 63}, std::uint64_t{4096}, std::uint64_t{1} << 40, UINT64_MAX - 63, UINT64_MAX})
    wrong.emplace_back(good, offset);
  for (int bit = 0; bit < 32; ++bit) {
    remote_key key = good;
    key.handle ^= 1U << bit;
    wrong.emplace_back(key, 0);
  }
  for (int bit = 13; bit < 47; ++bit) {
    remote_key key = good;
    key.size |= std::uint64_t{1} << bit;
    wrong.emplace_back(key, 4096);
    key = good;
    key.address ^= std::uint64_t{1} << bit;
    wrong.emplace_back(key, 0);
  }
  wrong.emplace_back(remote_key{}, 0);
  {
    auto memory = b.make_memory(64);
    const auto revoked = b.registered(at, memory);
    wrong.emplace_back(revoked.key(), 0);
  }
  const auto after = b.registered(at, b.make_memory(64));  // takes the revoked one's place

  for (const auto& [key, offset] : wrong)
    for (int kind = 0; kind < 3; ++kind) {
      tracked& op = b.make_operation(0);
      const post_result result = b.post(op, [&, k = key, o = offset](operation& p) {
        switch (kind) {
          case 0:
            return b.at(0).put(peer{at}, b.whole(source), k, o, p);
          case 1:
            return b.at(0).get(peer{at}, b.whole(source), k, o, p);
          default:
            return b.at(0).put_with_flag(peer{at}, b.whole(source), k, o, 77, p);
        }
      });
      to.expect(result == post_result::pending, "a wrong key is not answered pending");
      if (result != post_result::pending) continue;
      b.finish(op, result, "an operation with a wrong key");
      to.expect(op.op.result.error == errc::access_denied,
                fmt::format("wrong key (handle {:#x}, address {:#x}, size {:#x}, offset {:#x}, kind {}): "
                            "not access_denied",
                            key.handle, key.address, key.size, offset, kind));
    }
  b.settle();
  to.expect(matches(target, 5), "a wrong key changed memory");
  to.expect(b.seen(at).events.empty(), "a wrong key raised an event");
  tracked& op = b.make_operation(0);
  fill(source, 6);
  b.post_and_finish(
      op, [&](operation& p) { return b.at(0).put(peer{at}, b.whole(source), good, 64, p); },
      "a put afterwards");
  b.send(0, at, 1, 8);
  b.until([&] { return b.seen(at).packets() == 1; }, "a packet after refusals arrives");
  to.expect(matches(target.subspan(64, 64), 6), "a right key does not work after wrong ones");
}

template <fabric_set Set>
void regions_are_owned_once(report& to) {
  bench<Set> b(2, to);
  if (!native(b)) return;
  using region_type = typename Set::fabric_type::region;
  auto memory = b.make_memory(128), source = b.make_memory(16);
  const std::uint32_t at = b.last();
  const auto local_region = b.registered(0, source);
  auto reaches = [&](const remote_key& key) {
    tracked& op = b.make_operation(0);
    const post_result result =
        b.post(op, [&](operation& o) { return b.at(0).get(peer{at}, b.whole(source), key, 0, o); });
    b.finish(op, result, "get");
    return result == post_result::done || op.op.result.error == errc::success;
  };
  to.expect(!region_type{}, "a region made of nothing is one");
  remote_key key;
  {
    region_type first = b.registered(at, memory);
    key = first.key();
    region_type second = std::move(first);
    to.expect(static_cast<bool>(second) && !first, "a moved region is in two places");  // NOLINT
    to.expect(reaches(key), "a moved region's key does not work");
    region_type third;
    third = std::move(second);
    to.expect(reaches(key), "a move-assigned region's key does not work");
  }
  to.expect(!reaches(key), "a destroyed region's key still works");
  for (int i = 0; i < 5000; ++i) {  // slots come back
    const region_type region = b.at(at).register_memory(b.whole(memory));
    if (i % 1000 == 0 && region) to.expect(region.key().size == memory.size(), "a key does not say its size");
  }
  const region_type last = b.registered(at, memory);
  to.expect(reaches(last.key()), "after many registrations one does not work");
}

/// Where there is no native put, everything one-sided says so at once and touches nothing.
template <fabric_set Set>
void missing_put_is_declined(report& to) {
  bench<Set> b(2, to);
  const peer_limits limits = b.at(0).limits(peer{b.last()});
  auto memory = b.make_memory(64);
  if (!limits.native_put) {
    tracked& op = b.make_operation(0);
    const post_result put = b.at(0).put(peer{b.last()}, b.whole(memory), remote_key{}, 0, op.op);
    to.expect(put == post_result::down && !op.op.pending(), "put is not native and does not answer down");
  }
  if (!limits.native_atomics) {
    tracked& op = b.make_operation(0);
    const post_result add = b.at(0).fetch_add(peer{b.last()}, {memory.data(), 8}, remote_key{}, 0, 1, op.op);
    to.expect(add == post_result::down && !op.op.pending(),
              "atomics are not native and fetch_add does not answer down");
  }
}

}  // namespace verbena::contract
