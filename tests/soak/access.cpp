// A round of one-sided access: everybody writes into and reads from everybody's table, each in a column of its own,
// and counts in one word that all share.
#include "tests/soak/traffic.hpp"

#include <algorithm>

namespace verbena::soak {

void access_memory(traffic& t, communicator on, std::uint64_t salt) {
  dice d = t.common(salt), own = t.own(salt);
  const auto n = static_cast<std::uint64_t>(on.size()), me = static_cast<std::uint64_t>(on.rank().value);
  const std::size_t column = 8 + d.size(d.one_in(30) ? 2u << 20 : 100u << 10) / 8 * 8;
  const bool mapped = d.one_in(2);
  std::pmr::memory_resource* const from = mapped ? &memory(t.self) : std::pmr::new_delete_resource();
  guarded_bytes table(n * column + 8, from);
  std::fill_n(table.data(), n * column + 8, std::byte{0});
  const region mine = register_memory(on, table.data(), table.size());
  std::vector<remote_key> keys(n);
  const remote_key key = mine.key();
  allgather(on, &key, keys.data(), sizeof key);

  const std::uint64_t counts = 1 + d.below(30), word = d.roll();
  std::vector<guarded_bytes> columns;
  columns.reserve(n);
  std::vector<request> started;
  for (std::uint64_t r = 0; r < n; ++r) {
    const rank to{static_cast<int>(r)};
    guarded_bytes& out = columns.emplace_back(column);
    out.fill(word + me * n + r);
    switch (own.below(3)) {
      case 0:
        put(on, out.data(), column, to, keys[r], me * column);
        break;
      case 1: {  // in pieces
        const std::size_t half = own.below(column + 1);
        started.push_back(iput(on, out.data(), half, to, keys[r], me * column));
        started.push_back(iput(on, out.data() + half, column - half, to, keys[r], me * column + half));
        break;
      }
      default:
        put_with_flag(on, out.data(), column, to, keys[r], me * column, word);
        put_with_flag(on, nullptr, 0, to, keys[r], 0, word + 1);
        t.add(count::flags, 2);
    }
    t.add(count::puts);
    t.bytes += column;
  }
  for (std::uint64_t i = 0; i < counts; ++i) {
    const std::uint64_t r = own.below(n);
    const rank at{static_cast<int>(r)};
    if (own.one_in(3)) {
      for (std::uint64_t seen = 0;;) {
        const std::uint64_t was = compare_swap(on, seen, seen + 1, at, keys[r], n * column);
        if (was == seen) break;
        seen = was;
      }
    } else {
      fetch_add(on, 1, at, keys[r], n * column);
    }
    t.add(count::atomics);
  }
  wait_all(started);
  flush_all(on);
  guarded_bytes back(column);
  for (std::uint64_t r = 0; r < n; ++r) {  // what is flushed can be read
    get(on, back.data(), column, rank{static_cast<int>(r)}, keys[r], me * column);
    t.expect(back.holds(word + me * n + r, column), "another byte came back from a get");
    t.add(count::gets);
  }
  barrier(on);
  for (std::uint64_t r = 0; r < n; ++r) {
    guarded_bytes theirs(column);
    std::copy_n(table.data() + r * column, column, theirs.data());
    t.expect(theirs.holds(word + r * n + me, column), "another byte was put");
    for (std::optional<std::uint64_t> flag = test_flag(on, rank{static_cast<int>(r)}); flag;
         flag = test_flag(on, rank{static_cast<int>(r)}))
      t.expect(*flag == word || *flag == word + 1, "another word came with a put");
  }
  std::uint64_t counted = 0;
  std::copy_n(table.data() + n * column, 8, reinterpret_cast<std::byte*>(&counted));
  t.expect(allreduce(on, counted) == counts * n, "an atomic was lost or doubled");
  t.expect(table.holds(0, 0), "a put wrote beyond its region");
}

void make_communicators(traffic& t, communicator on, std::uint64_t salt) {
  dice d = t.common(salt);
  const std::uint64_t hue = d.roll();
  const auto me = static_cast<std::uint64_t>(on.rank().value);
  const int color = static_cast<int>(word_of(hue, me) % 3) - 1;  // -1: none
  const owned_communicator part = split(on, color, static_cast<int>(word_of(hue + 1, me) % 7));
  t.expect(static_cast<bool>(part) == (color >= 0), "a communicator for another color");
  t.add(count::communicators);
  if (part) {
    const owned_communicator twin = dup(part);
    t.add(count::communicators);
    int members = 0;
    for (int r = 0; r < on.size(); ++r)
      members += static_cast<int>(word_of(hue, static_cast<std::uint64_t>(r)) % 3) - 1 == color;
    t.expect(communicator(part).size() == members, "a communicator of another size");
    exchange_messages(t, part, salt + 1);
    run_collectives(t, twin, salt + 2);
    if (d.one_in(2)) access_memory(t, part, salt + 3);
  }
  std::vector<rank> reversed;
  for (int r = on.size(); r-- > 0;) reversed.push_back(rank{r});
  const owned_communicator back = create(on, reversed);
  t.add(count::communicators);
  run_collectives(t, back, salt + 4);
}

}  // namespace verbena::soak
