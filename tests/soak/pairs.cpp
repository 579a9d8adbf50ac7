// Rounds of blocking calls: neighbours of a row that all know talk in one of six ways; one rank floods another.
#include "tests/soak/traffic.hpp"

#include <algorithm>
#include <utility>

namespace verbena::soak {

void talk_in_pairs(traffic& t, communicator on, std::uint64_t salt) {
  dice d = t.common(salt);
  // In a row that all know, neighbours talk; an odd one waits.
  std::vector<int> row;
  for (int r = 0; r < on.size(); ++r) row.push_back(r);
  for (std::size_t i = row.size(); i > 1; --i) std::swap(row[i - 1], row[d.below(i)]);
  const auto at = static_cast<std::size_t>(std::find(row.begin(), row.end(), on.rank().value) - row.begin());
  const std::uint64_t key = d.roll(), times = 1 + d.below(20);
  const std::size_t size = d.size(1u << 20);
  const std::uint64_t how = d.below(6);
  const tag label{static_cast<int>(d.below(1ULL << 31))};
  if ((at ^ 1) >= row.size()) return;
  const rank partner{row[at ^ 1]};
  const bool first = (at & 1) == 0;
  guarded_bytes out(size), in(size);
  for (std::uint64_t i = 0; i < times; ++i) {
    t.add(count::blocking_pairs);
    out.fill(key + i + (first ? 0 : 1'000));
    const std::uint64_t others = key + i + (first ? 1'000 : 0);
    status got;
    switch (how) {
      case 0:
        got = on.sendrecv(out.data(), size, partner, label, in.data(), size, partner, label);
        break;
      case 1:
        got = on.sendrecv_replace(out.data(), size, partner, label, partner, label);
        std::copy_n(out.data(), size, in.data());
        break;
      case 2: {  // a receive that nobody serves is given up
        request never = on.irecv(in.data(), size, partner, tag{label.value ^ 1});
        t.expect(never.cancel(), "a receive without a message could not be given up");
        t.add(count::cancelled);
        t.expect(never.wait(std::nothrow).error == errc::cancelled,
                 "a receive that was given up does not say so");
        got = on.sendrecv(out.data(), size, partner, label, in.data(), size, partner, label);
        break;
      }
      case 3:  // one that is too short says so, and the next message is unharmed
        if (first && size > 1) {
          const status cut = on.recv(std::nothrow, in.data(), size / 2, partner, label);
          t.expect(cut.error == errc::truncated, "a message too long was not reported");
          t.add(count::truncated);
        }
        if (!first && size > 1) on.send(out.data(), size, partner, label);
        got = on.sendrecv(out.data(), size, partner, label, in.data(), size, partner, label);
        break;
      case 4:
        if (first) on.ssend(out.data(), size, partner, label);
        t.expect(on.probe(partner, label).bytes == size, "a probe saw another size");
        got = on.recv(in.data(), size, partner, label);
        if (!first) on.ssend(out.data(), size, partner, label);
        break;
      default:
        if (first) on.send(out.data(), size, partner, label);
        got = on.recv(in.data(), size, partner, label);
        if (!first) on.send(out.data(), size, partner, label);
    }
    t.expect(got.bytes == size && got.source == partner && got.label == label, "another message in a pair");
    t.expect(in.holds(others, size), "another byte in a pair");
    t.bytes += size;
  }
}

void flood(traffic& t, communicator on, std::uint64_t salt) {
  dice d = t.common(salt);
  const auto n = static_cast<std::uint64_t>(on.size());
  const rank from{static_cast<int>(d.below(n))}, to{static_cast<int>(d.below(n))};
  const std::uint64_t number = 1 + d.below(d.one_in(4) ? 20'000 : 1'000), key = d.roll();
  const std::size_t most = 1 + d.below(200);
  if (from == to) return;
  if (on.rank() == from)
    for (std::uint64_t i = 0; i < number; ++i) {
      guarded_bytes out(word_of(key, i) % most);
      out.fill(key + i);
      on.send(out.data(), out.size(), to, tag{7});
    }
  if (on.rank() != to) return;
  for (std::uint64_t i = 0; i < number; ++i) {
    const std::size_t size = word_of(key, i) % most;
    guarded_bytes in(size);
    const status got = on.recv(in.data(), size, from, tag{7});
    t.expect(got.bytes == size && in.holds(key + i, size), "another message in a flood");
    t.add(count::flooded);
    t.bytes += size;
  }
}

}  // namespace verbena::soak
