#include "collectives/checker.hpp"

#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"
#include "tests/sanitized.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace verbena::collectives;

namespace {

// The proofs are the release build's; a sanitizer only watches the checker.
constexpr int largest_size = verbena::tests::sanitized ? 20 : 64;

struct known {
  std::string name;
  purpose what;
  algorithm of;
  bool rooted = false;
  bool never_in_place = false;
};

const std::vector<known>& all_algorithms() {
  static const std::vector<known> all = {
      {"allreduce recursive doubling", purpose::allreduce, allreduce_recursive_doubling},
      {"allreduce ring", purpose::allreduce, allreduce_ring},
      {"allreduce node exchange", purpose::allreduce, allreduce_node_exchange},
      {"allreduce node slices", purpose::allreduce, allreduce_node_slices},
      {"allreduce node gathered slices", purpose::allreduce, allreduce_node_gathered_slices},
      {"allreduce node gathering", purpose::allreduce, allreduce_node_gathering},
      {"barrier dissemination", purpose::barrier, barrier_dissemination},
      {"barrier node exchange", purpose::barrier, barrier_node_exchange},
      {"barrier node gathering", purpose::barrier, barrier_node_gathering},
      {"broadcast binomial", purpose::broadcast, broadcast_binomial, true},
      {"broadcast scatter ring", purpose::broadcast, broadcast_scatter_ring, true},
      {"broadcast node", purpose::broadcast, broadcast_node, true},
      {"broadcast node gathering", purpose::broadcast, broadcast_node_gathering, true},
      {"reduce binomial", purpose::reduce, reduce_binomial, true},
      {"reduce scatter gather", purpose::reduce, reduce_scatter_gather, true},
      {"reduce node", purpose::reduce, reduce_node, true},
      {"reduce node slices", purpose::reduce, reduce_node_slices, true},
      {"reduce node gathered slices", purpose::reduce, reduce_node_gathered_slices, true},
      {"reduce node gathering", purpose::reduce, reduce_node_gathering, true},
      {"gather binomial", purpose::gather, gather_binomial, true},
      {"gather linear", purpose::gather, gather_linear, true},
      {"gather node", purpose::gather, gather_node, true},
      {"gather node gathering", purpose::gather, gather_node_gathering, true},
      {"scatter binomial", purpose::scatter, scatter_binomial, true},
      {"scatter linear", purpose::scatter, scatter_linear, true},
      {"scatter node", purpose::scatter, scatter_node, true},
      {"scatter node gathering", purpose::scatter, scatter_node_gathering, true},
      {"allgather bruck", purpose::allgather, allgather_bruck},
      {"allgather ring", purpose::allgather, allgather_ring},
      {"allgather node", purpose::allgather, allgather_node},
      {"allgather node gathering", purpose::allgather, allgather_node_gathering},
      {"alltoall bruck", purpose::alltoall, alltoall_bruck},
      {"alltoall pairwise", purpose::alltoall, alltoall_pairwise, false, true},
      {"alltoall exchange", purpose::alltoall, alltoall_exchange},
      {"alltoall node", purpose::alltoall, alltoall_node},
      {"alltoall node gathering", purpose::alltoall, alltoall_node_gathering},
  };
  return all;
}

checked_call call_of(const known& k, int size, int repetitions, int root = 0) {
  checked_call call{k.what, {}, repetitions, root};
  for (int r = 0; r < size; ++r) call.ranks.push_back(k.of(r, size, {root}));
  return call;
}

/// Roots worth a look: both ends, the middle and next to it; of large sizes one, another one each time.
std::vector<int> roots_of(const known& k, int size) {
  if (k.rooted && size > 17) return {size * 7 % 19 * size / 19};
  std::vector<int> result{0};
  for (int root : {1, size / 2, size - 1})
    if (k.rooted && root > result.back() && root < size) result.push_back(root);
  return result;
}

/// A root that is not the first rank, where there is one.
int some_root(const known& k, int size) {
  return k.rooted ? size / 2 : 0;
}

/// A mutation must be noticed in place or not: some predecessors matter only in place.
bool noticed(const checked_call& call, bool never_in_place = false) {
  return !check_schedules({call}, false).empty() ||
         (!never_in_place && !check_schedules({call}, true).empty());
}

/// Repetitions until a slot of the node's scratch is used again, and then some.
constexpr int round_the_slots = static_cast<int>(node_slots) + 2;

/// A look that only bounds how far members are apart: what it tells may come another way too.
bool learns_only(const step& one) {
  return one.what == action::await && one.count == 0;
}

void drop_step(schedule& s, std::size_t victim) {
  if (s.steps[victim].what == action::publish) --s.publishes;
  if (victim < s.ahead) --s.ahead;
  s.steps.erase(s.steps.begin() + static_cast<std::ptrdiff_t>(victim));
  for (step& one : s.steps)
    for (std::uint32_t& before : one.after) {
      if (before == victim) before = no_step;
      if (before != no_step && before > victim) --before;
    }
}

}  // namespace

TEST_CASE("every algorithm is proven for every size", "[collectives][checker]") {
  for (const known& k : all_algorithms())
    for (int size = 1; size <= largest_size; ++size)
      for (int root : roots_of(k, size))
        for (bool in_place : {false, true}) {
          const bool has_both = k.what != purpose::broadcast && k.what != purpose::barrier;
          if (in_place && (k.never_in_place || !has_both)) continue;
          INFO(k.name << ", " << size << " ranks" << (in_place ? ", in place" : "") << ", root " << root);
          CHECK(check_algorithm(k.what, k.of, size, in_place, size <= 17 ? 6 : 2, root) == "");
        }
}

TEST_CASE("rank order is promised by all but the rings", "[collectives][checker]") {
  for (const known& k : all_algorithms()) {
    INFO(k.name);
    CHECK(k.of(0, 5, {}).rank_order == (k.name != "allreduce ring" && k.name != "reduce scatter gather"));
  }
  checked_call ring = call_of({"", purpose::allreduce, allreduce_ring}, 3, 1);
  for (schedule& s : ring.ranks) s.rank_order = true;
  CHECK_THAT(check_schedules({ring}, false), Catch::Contains("does not keep rank order"));
}

TEST_CASE("schedules that share the node's slots may follow each other in any order",
          "[collectives][checker]") {
  std::vector<known> on_node;
  for (const known& k : all_algorithms())
    if (k.name.find("node") != std::string::npos) on_node.push_back(k);
  for (int size : {2, 3, largest_size > 20 ? 6 : 3})
    for (const known& a : on_node)
      for (const known& b : on_node)
        for (const known& c : on_node) {
          INFO(size << ": " << a.name << ", " << b.name << ", " << c.name);
          CHECK(check_schedules({call_of(a, size, 3, some_root(a, size)), call_of(b, size, 1),
                                 call_of(c, size, 6), call_of(a, size, 2, a.rooted ? size - 1 : 0)},
                                true) == "");
        }
}

TEST_CASE("with one slot of node scratch less, a slow reader is noticed", "[collectives][checker]") {
  // Everybody runs one repetition ahead, before and after one in which rank 0 alone hears of all.
  for (int size : {3, 8}) {
    const std::vector<checked_call> calls{call_of({"", purpose::alltoall, alltoall_node}, size, 3),
                                          call_of({"", purpose::gather, gather_node}, size, 1),
                                          call_of({"", purpose::alltoall, alltoall_node}, size, 3)};
    CHECK(check_schedules(calls, false) == "");
    CHECK_THAT(check_schedules(calls, false, node_slots - 1), Catch::Contains("may still touch"));
  }
}

TEST_CASE("a member that does not learn of the others is noticed", "[collectives][checker]") {
  for (const known& k : all_algorithms()) {
    if (!k.rooted || k.name.find("node") == std::string::npos) continue;
    for (int size : {3, 5}) {
      bool learns = false;
      const checked_call before = call_of({"", purpose::alltoall, alltoall_node}, size, 1);
      checked_call call = call_of(k, size, round_the_slots, 0);
      for (int r = 1; r < size; ++r) {
        auto& steps = call.ranks[static_cast<std::size_t>(r)].steps;
        learns |= std::any_of(steps.begin(), steps.end(), learns_only);
      }
      if (!learns || k.what == purpose::broadcast || k.what == purpose::scatter) continue;  // the root tells
      std::vector<step>& steps = call.ranks[1].steps;
      steps.erase(std::remove_if(steps.begin(), steps.end(), learns_only), steps.end());
      INFO(k.name << ", " << size << " ranks");
      CHECK_THAT(check_schedules({before, call, before}, false), Catch::Contains("may still touch"));
    }
  }
}

TEST_CASE("dropping any step of any algorithm is noticed", "[collectives][checker]") {
  for (const known& k : all_algorithms())
    for (int size : {2, 3, 4, 7})
      for (int r = 0; r < size; ++r) {
        const checked_call right = call_of(k, size, round_the_slots, some_root(k, size));
        const std::vector<step>& steps = right.ranks[static_cast<std::size_t>(r)].steps;
        for (std::size_t victim = 0; victim < steps.size(); ++victim) {
          if (learns_only(steps[victim])) continue;
          checked_call call = right;
          drop_step(call.ranks[static_cast<std::size_t>(r)], victim);
          INFO(k.name << ", " << size << " ranks: rank " << r << " without step " << victim);
          CHECK(noticed(call, k.never_in_place));
        }
      }
}

TEST_CASE("dropping any predecessor of any algorithm is noticed", "[collectives][checker]") {
  int dropped = 0;
  for (const known& k : all_algorithms())
    for (int size : {3, 4, 6, 7, 8})
      for (int r = 0; r < size; ++r) {
        // Elsewhere the last round of a dissemination brings news that some ranks have twice.
        if (k.of == barrier_dissemination && size != 4 && size != 8) continue;
        const checked_call right = call_of(k, size, 2, some_root(k, size));
        const auto& steps = right.ranks[static_cast<std::size_t>(r)].steps;
        for (std::size_t i = 0; i < steps.size(); ++i)
          for (std::size_t a = 0; a < steps[i].after.size(); ++a) {
            if (steps[i].after[a] == no_step) continue;
            checked_call call = right;
            call.ranks[static_cast<std::size_t>(r)].steps[i].after[a] = no_step;
            INFO(k.name << ", " << size << " ranks: rank " << r << ", step " << i << " without predecessor "
                        << a);
            CHECK(noticed(call, k.never_in_place));
            ++dropped;
          }
      }
  CHECK(dropped > 100);
}

TEST_CASE("swapping a peer in any algorithm is noticed", "[collectives][checker]") {
  for (const known& k : all_algorithms())
    for (int size : {3, 4, 7})
      for (int r = 0; r < size; ++r) {
        const checked_call right = call_of(k, size, round_the_slots, some_root(k, size));
        const auto& steps = right.ranks[static_cast<std::size_t>(r)].steps;
        for (std::size_t i = 0; i < steps.size(); ++i) {
          if (steps[i].peer < 0 || learns_only(steps[i])) continue;
          checked_call call = right;
          step& one = call.ranks[static_cast<std::size_t>(r)].steps[i];
          do one.peer = (one.peer + 1) % size;
          while (one.peer == r);
          INFO(k.name << ", " << size << " ranks: rank " << r << ", step " << i);
          CHECK(noticed(call, k.never_in_place));
        }
      }
}

TEST_CASE("a wrong range, cell or operand order is noticed", "[collectives][checker]") {
  checked_call call = call_of({"", purpose::allreduce, allreduce_recursive_doubling}, 4, 1);
  for (step& one : call.ranks[1].steps)
    if (one.what == action::reduce) std::swap(one.left, one.right);
  CHECK(noticed(call));

  call = call_of({"", purpose::allreduce, allreduce_ring}, 4, 1);
  for (step& one : call.ranks[2].steps)
    if (one.to.where == place::scratch) one.to.at = 0;
  for (step& one : call.ranks[2].steps)
    if (one.left.where == place::scratch) one.left.at = 0;
  CHECK(noticed(call));  // both cells are one: a receive is posted while the other still lies there

  call = call_of({"", purpose::allreduce, allreduce_ring}, 4, 1);
  call.ranks[0].steps[0].first = (call.ranks[0].steps[0].first + 1) % 4;
  CHECK_THAT(check_schedules({call}, false), Catch::Contains("different chunks"));
}

TEST_CASE("puts with flags are ordered by the flag and by nothing else", "[collectives][checker]") {
  // Two ranks hand each other their operand by put; `waits` false: the target does not wait for the flag.
  const auto make = [](bool waits) {
    checked_call call{purpose::allreduce, {}, 1};
    for (int r = 0; r < 2; ++r) {
      schedule s;
      s.scratch_chunks = 1;
      step put;
      put.what = action::put_with_flag;
      put.peer = 1 - r;
      put.chunks = 1;
      put.left = input_at(0);
      put.to = scratch_at(0);
      s.steps.push_back(put);
      step flag;
      flag.what = action::wait_flag;
      flag.peer = 1 - r;
      if (waits) s.steps.push_back(flag);
      builder add(s);
      const piece mine = input_at(0);
      const piece theirs = scratch_at(0);
      add.reduce({0, 1}, r == 0 ? mine : theirs, r == 0 ? theirs : mine, output_at(0));
      call.ranks.push_back(s);
    }
    return call;
  };
  CHECK(check_schedules({make(true)}, false) == "");
  CHECK(check_schedules({make(false)}, false) != "");
  // In place the reduction overwrites the operand while the put may still read it.
  CHECK_THAT(check_schedules({make(true)}, true), Catch::Contains("going on"));
}
