// A round of collectives: one to three under way at once, in any of their forms, waited for in any order.
#include "tests/soak/traffic.hpp"

#include <algorithm>
#include <deque>

namespace verbena::soak {
namespace {

using words = std::vector<std::uint64_t>;

enum class kind : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  gather,
  scatter,
  allgather,
  alltoall,
  count
};
enum class form : std::uint8_t { blocking, started, persistent, count };

/// One call: what goes in, what must come out.
struct call {
  kind what;
  form how;
  rank root;
  reduction by;
  std::size_t block;  ///< words
  bool in_place;
  words in, out, right;
};

std::uint64_t reduced(reduction by, std::uint64_t a, std::uint64_t b) {
  switch (by) {
    case reduction::sum:
      return a + b;
    case reduction::max:
      return std::max(a, b);
    case reduction::min:
      return std::min(a, b);
    case reduction::bit_xor:
      return a ^ b;
    default:
      return a & b;
  }
}

/// The words that rank `from` gives, beginning with number `at`.
void give(words& to, std::uint64_t key, int from, std::size_t at, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to.push_back(word_of(key + static_cast<std::uint64_t>(from) * 0x51ed270b7a1f39c5ULL, at + i));
}

call make_call(dice& d, communicator on) {
  static constexpr reduction operators[] = {reduction::sum, reduction::max, reduction::min,
                                            reduction::bit_xor, reduction::bit_and};
  const auto n = static_cast<std::size_t>(on.size());
  const int me = on.rank().value;
  call c{};
  c.what = static_cast<kind>(d.below(static_cast<std::uint64_t>(kind::count)));
  c.how = static_cast<form>(d.below(static_cast<std::uint64_t>(form::count)));
  c.root = rank{static_cast<int>(d.below(n))};
  c.by = operators[d.below(std::size(operators))];
  c.block = d.size(d.one_in(40) ? 1u << 20 : 16u << 10);
  c.in_place = d.one_in(4);
  const std::uint64_t key = d.roll();
  const bool root = on.rank() == c.root;
  switch (c.what) {
    case kind::barrier:
    case kind::count:
      break;
    case kind::broadcast:
      give(c.right, key, c.root.value, 0, c.block);
      c.out = root ? c.right : words(c.block);
      break;
    case kind::reduce:
    case kind::allreduce:
      give(c.in, key, me, 0, c.block);
      if (c.what == kind::reduce && !root) break;
      give(c.right, key, 0, 0, c.block);
      for (int r = 1; r < on.size(); ++r) {
        words theirs;
        give(theirs, key, r, 0, c.block);
        for (std::size_t i = 0; i < c.block; ++i) c.right[i] = reduced(c.by, c.right[i], theirs[i]);
      }
      c.out.resize(c.block);
      break;
    case kind::gather:
    case kind::allgather:
      give(c.in, key, me, 0, c.block);
      if (c.what == kind::gather && !root) break;
      for (int r = 0; r < on.size(); ++r) give(c.right, key, r, 0, c.block);
      c.out.resize(c.right.size());
      break;
    case kind::scatter:
      if (root) give(c.in, key, c.root.value, 0, c.block * n);
      give(c.right, key, c.root.value, static_cast<std::size_t>(me) * c.block, c.block);
      c.out.resize(c.block);
      break;
    case kind::alltoall:
      give(c.in, key, me, 0, c.block * n);
      for (int r = 0; r < on.size(); ++r)
        give(c.right, key, r, static_cast<std::size_t>(me) * c.block, c.block);
      c.out.resize(c.right.size());
      break;
  }
  return c;
}

request start(call& c, communicator on) {
  const std::size_t bytes = c.block * sizeof(std::uint64_t);
  switch (c.what) {
    case kind::barrier:
    case kind::count:
      return ibarrier(on);
    case kind::broadcast:
      return ibroadcast(on, c.out.data(), bytes, c.root);
    case kind::reduce:
      return ireduce(on, c.in.data(), c.out.data(), c.block, element_of<std::uint64_t>(), c.by, c.root);
    case kind::allreduce:
      if (c.in_place) c.out = c.in;
      return iallreduce(on, c.in_place ? c.out.data() : c.in.data(), c.out.data(), c.block,
                        element_of<std::uint64_t>(), c.by);
    case kind::gather:
      return igather(on, c.in.data(), c.out.data(), bytes, c.root);
    case kind::scatter:
      return iscatter(on, c.in.data(), c.out.data(), bytes, c.root);
    case kind::allgather:
      return iallgather(on, c.in.data(), c.out.data(), bytes);
    case kind::alltoall:
      return ialltoall(on, c.in.data(), c.out.data(), bytes);
  }
  return {};
}

persistent_request prepare(call& c, communicator on) {
  const std::size_t bytes = c.block * sizeof(std::uint64_t);
  switch (c.what) {
    case kind::barrier:
    case kind::count:
      return barrier_init(on);
    case kind::broadcast:
      return broadcast_init(on, c.out.data(), bytes, c.root);
    case kind::reduce:
      return reduce_init(on, c.in.data(), c.out.data(), c.block, element_of<std::uint64_t>(), c.by, c.root);
    case kind::allreduce:
      return allreduce_init(on, c.in.data(), c.out.data(), c.block, element_of<std::uint64_t>(), c.by);
    case kind::gather:
      return gather_init(on, c.in.data(), c.out.data(), bytes, c.root);
    case kind::scatter:
      return scatter_init(on, c.in.data(), c.out.data(), bytes, c.root);
    case kind::allgather:
      return allgather_init(on, c.in.data(), c.out.data(), bytes);
    case kind::alltoall:
      return alltoall_init(on, c.in.data(), c.out.data(), bytes);
  }
  return {};
}

void check(traffic& t, const call& c) {
  t.expect(c.out == c.right, "another result of a collective");
  t.add(count::collectives);
  t.bytes += c.right.size() * sizeof(std::uint64_t);
}

}  // namespace

void run_collectives(traffic& t, communicator on, std::uint64_t salt) {
  dice d = t.common(salt), own = t.own(salt);
  std::deque<call> calls;
  std::vector<request> under_way;
  std::deque<persistent_request> prepared;
  const std::uint64_t number = 1 + d.below(3);
  for (std::uint64_t i = 0; i < number; ++i) {
    call& c = calls.emplace_back(make_call(d, on));
    if (c.how == form::persistent) {
      t.add(count::persistent_collectives);
      persistent_request& again = prepared.emplace_back(prepare(c, on));
      again.start().wait();
      check(t, c);
      if (c.what != kind::broadcast || on.rank() != c.root) std::fill(c.out.begin(), c.out.end(), 0);
      under_way.push_back(again.start());
    } else {
      under_way.push_back(start(c, on));
      if (c.how == form::blocking)
        under_way.back().wait();
      else
        t.add(count::started_collectives);
    }
  }
  while (own.one_in(2) && !test_all(under_way)) {
  }
  for (std::size_t i = under_way.size(); i-- > 0;) under_way[i].wait();
  for (const call& c : calls) check(t, c);
}

}  // namespace verbena::soak
