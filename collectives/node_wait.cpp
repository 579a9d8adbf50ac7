#include "collectives/node_wait.hpp"

#include "base/futex.hpp"

#include <sched.h>

#include <algorithm>
#include <climits>

namespace verbena::collectives {
namespace {

constexpr base::nanoseconds longest_yield = base::millisecond;
constexpr base::nanoseconds first_sleep = base::millisecond;
constexpr base::nanoseconds next_sleeps = 200 * base::millisecond;  ///< then a look at who has died

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
  }
  const base::nanoseconds limit = now + std::min(2 * last_wait_, longest_yield) + 20 * base::microsecond;
  for (int i = 0; now < limit; ++i, now = base::steady_now()) {
    ::sched_yield();
    if (ready(argument)) return over();
    if (i % 4 == 0) port_.progress();
  }
  const bool came = asleep(ready, argument, gathering);
  return came && over();
}

bool node_wait::asleep(look ready, void* argument, bool gathering) noexcept {
  block_head& head = node_.head();
  for (base::nanoseconds at_most = first_sleep;; at_most = next_sleeps) {
    if (ready(argument)) return true;
    if (port_.failed_member()) return false;
    if (!gathering || !port_.nothing_pending()) {
      head.bell_sleepers.fetch_add(1, std::memory_order_seq_cst);  // before the looks in wait_until
      const bool well = port_.wait_until(ready, argument);
      head.bell_sleepers.fetch_sub(1, std::memory_order_relaxed);
      return well || ready(argument);
    }
    // Announce, then look, against release(): store, then look for sleepers. Both sequentially consistent, so
    // one sees the other; the kernel compares the word once more.
    head.futex_sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = head.release.load(std::memory_order_seq_cst);
    if (!ready(argument)) base::futex_wait(head.release, seen, at_most);
    head.futex_sleepers.fetch_sub(1, std::memory_order_relaxed);
    port_.progress();
  }
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
