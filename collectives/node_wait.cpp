#include "collectives/node_wait.hpp"

#include "base/futex.hpp"

#include <sched.h>

#include <algorithm>
#include <climits>

namespace verbena::collectives {
namespace {

constexpr base::nanoseconds longest_yield = base::millisecond;
/// On the release word; a longer wait goes on at the doorbell, where this rank counts as asleep, and news of
/// a death comes too.
constexpr base::nanoseconds shared_sleep = 2 * base::millisecond;

}  // namespace

bool node_wait::slowly(look ready, void* argument, bool gathering) noexcept {
  constexpr int looks_per_tick = 16;
  const base::nanoseconds start = base::steady_now();
  base::nanoseconds now = start;
  const auto over = [&] {
    last_wait_ = base::steady_now() - start;
    return true;
  };
  for (const base::nanoseconds limit = start + port_.spin_budget(); now < limit; now = base::steady_now()) {
    for (int i = 0; i < looks_per_tick; ++i)
      if (ready(argument)) return over();
    port_.progress();
    port_.doors().pass();
  }
  const base::nanoseconds limit = now + std::min(2 * last_wait_, longest_yield) + 20 * base::microsecond;
  for (int i = 0; now < limit; ++i, now = base::steady_now()) {
    const int depth = port_.doors().step_out();
    ::sched_yield();
    port_.doors().step_in(depth);
    if (ready(argument)) return over();
    if (i % 4 == 0) port_.progress();
  }
  const bool came = asleep(ready, argument, gathering);
  return came && over();
}

bool node_wait::asleep(look ready, void* argument, bool gathering) noexcept {
  block_head& head = node_.head();
  if (gathering && port_.nothing_pending()) {
    // Announce, then look, against release(): store, then look for sleepers. Both sequentially consistent, so
    // one sees the other; the kernel compares the word once more.
    head.futex_sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = head.release.load(std::memory_order_seq_cst);
    if (!ready(argument)) {
      const int depth = port_.doors().step_out();
      base::futex_wait(head.release, seen, shared_sleep);
      port_.doors().step_in(depth);
    }
    head.futex_sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (ready(argument)) return true;
  }
  // Whoever has left the job in good order had finished this exchange or gathering, so had seen all that we
  // wait for, if it took part at all: once it is gone and we are not ready, we never will be.
  struct hope {
    runtime::collective_port& port;
    look ready;
    void* argument;
  } waiting{port_, ready, argument};
  const look over = [](void* p) noexcept {
    const hope& h = *static_cast<hope*>(p);
    return h.ready(h.argument) || h.port.departed_member().has_value();
  };
  head.bell_sleepers.fetch_add(1, std::memory_order_seq_cst);  // before the looks in wait_until
  port_.wait_until(over, &waiting);
  head.bell_sleepers.fetch_sub(1, std::memory_order_relaxed);
  return ready(argument);
}

void node_wait::release(std::uint32_t number) noexcept {
  block_head& head = node_.head();
  head.release.store(number, std::memory_order_seq_cst);
  if (head.futex_sleepers.load(std::memory_order_seq_cst) != 0) base::futex_wake(head.release, INT_MAX);
  wake_bells();
}

void node_wait::ring_all() noexcept {
  const rank self = port_.self();
  for (int member = 0; member < port_.size(); ++member)
    if (member != self.value) port_.wake(rank{member});
}

}  // namespace verbena::collectives
