#include "collectives/checker.hpp"

#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace verbena::collectives;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VERBENA_SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VERBENA_SLOW_BUILD 1
#endif
#endif

namespace {

#ifdef VERBENA_SLOW_BUILD
constexpr int largest_size = 20;  // the proofs are the release build's; a sanitizer only watches the checker
#else
constexpr int largest_size = 64;
#endif

struct known {
  std::string name;
  purpose what;
  algorithm of;
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
  };
  return all;
}

checked_call call_of(const known& k, int size, int repetitions) {
  checked_call call{k.what, {}, repetitions};
  for (int r = 0; r < size; ++r) call.ranks.push_back(k.of(r, size, {}));
  return call;
}

/// A mutation must be noticed in place or not: some predecessors matter only in place.
bool noticed(const checked_call& call) {
  return !check_schedules({call}, false).empty() || !check_schedules({call}, true).empty();
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
      for (bool in_place : {false, true}) {
        INFO(k.name << ", " << size << " ranks" << (in_place ? ", in place" : ""));
        CHECK(check_algorithm(k.what, k.of, size, in_place, size <= 17 ? 6 : 2) == "");
      }
}

TEST_CASE("rank order is promised by all but the ring", "[collectives][checker]") {
  for (const known& k : all_algorithms()) {
    INFO(k.name);
    CHECK(k.of(0, 5, {}).rank_order == (k.name != "allreduce ring"));
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
  for (int size : {2, 3, 5, 8})
    for (const known& a : on_node)
      for (const known& b : on_node)
        for (const known& c : on_node) {
          INFO(size << ": " << a.name << ", " << b.name << ", " << c.name);
          CHECK(check_schedules(
                    {call_of(a, size, 3), call_of(b, size, 1), call_of(c, size, 5), call_of(a, size, 2)},
                    true) == "");
        }
}

TEST_CASE("with one slot of node scratch less, a slow reader is noticed", "[collectives][checker]") {
  for (int size : {2, 3, 8}) {
    const checked_call call = call_of({"", purpose::allreduce, allreduce_node_exchange}, size, 8);
    CHECK(check_schedules({call}, false) == "");
    CHECK_THAT(check_schedules({call}, false, node_slots - 1), Catch::Contains("may still touch"));
  }
}

TEST_CASE("dropping any step of any algorithm is noticed", "[collectives][checker]") {
  for (const known& k : all_algorithms())
    for (int size : {2, 3, 4, 7})
      for (int r = 0; r < size; ++r) {
        const checked_call right = call_of(k, size, 5);
        const std::size_t steps = right.ranks[static_cast<std::size_t>(r)].steps.size();
        for (std::size_t victim = 0; victim < steps; ++victim) {
          checked_call call = right;
          drop_step(call.ranks[static_cast<std::size_t>(r)], victim);
          INFO(k.name << ", " << size << " ranks: rank " << r << " without step " << victim);
          CHECK(noticed(call));
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
        const checked_call right = call_of(k, size, 2);
        const auto& steps = right.ranks[static_cast<std::size_t>(r)].steps;
        for (std::size_t i = 0; i < steps.size(); ++i)
          for (std::size_t a = 0; a < steps[i].after.size(); ++a) {
            if (steps[i].after[a] == no_step) continue;
            checked_call call = right;
            call.ranks[static_cast<std::size_t>(r)].steps[i].after[a] = no_step;
            INFO(k.name << ", " << size << " ranks: rank " << r << ", step " << i << " without predecessor "
                        << a);
            CHECK(noticed(call));
            ++dropped;
          }
      }
  CHECK(dropped > 100);
}

TEST_CASE("swapping a peer in any algorithm is noticed", "[collectives][checker]") {
  for (const known& k : all_algorithms())
    for (int size : {3, 4, 7})
      for (int r = 0; r < size; ++r) {
        const checked_call right = call_of(k, size, 5);
        const auto& steps = right.ranks[static_cast<std::size_t>(r)].steps;
        for (std::size_t i = 0; i < steps.size(); ++i) {
          if (steps[i].peer < 0) continue;
          checked_call call = right;
          step& one = call.ranks[static_cast<std::size_t>(r)].steps[i];
          do one.peer = (one.peer + 1) % size;
          while (one.peer == r);
          INFO(k.name << ", " << size << " ranks: rank " << r << ", step " << i);
          CHECK(noticed(call));
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
