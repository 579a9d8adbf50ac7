// How a rank waits. The only place that blocks. Simulated ranks share one thread: their waits give the turn to the next rank
// (take_turns) where others give up the core.
//
// A rank sleeps on exactly one thing: its doorbell in the job page (base/job_page.hpp). The owner:
//
//   1. seen = word; sleeping = 1
//   2. looks at everything once more; found something: sleeping = 0, done
//   3. sleeps while word == seen, at most first_sleep (1 ms)
//   4. seen = word; looks at everything again, `sleeping` still 1; found something: sleeping = 0, done
//   5. sleeps while word == seen, until rung (or a coarse deadline for the caller's own clock)
//
// A sender stores its message (release), then reads `sleeping` (relaxed), and rings if it is 1. No fence: the
// processor may read `sleeping` = 0 before the message is visible to the owner's look in step 2. Then no ring
// comes, and the message becomes visible within nanoseconds to microseconds, long before step 4, which finds
// it. A sender whose store comes after step 4's look reads `sleeping` at least first_sleep after it was set,
// so it sees 1 and rings. That is all orders.
//
// Before sleeping it spins while a core is free for it, then yields for up to about twice as long as the last
// wait took. `awake` in the job page counts the ranks of the node that are not asleep: the hint for "a core
// is free".
#pragma once

#include "base/clock.hpp"
#include "base/job_page.hpp"
#include "runtime/gate.hpp"

#include <cstdint>

namespace verbena::runtime {

class waiter {
 public:
  static constexpr base::nanoseconds first_sleep = base::millisecond;
  static constexpr base::nanoseconds longest_yield = base::millisecond;
  static constexpr base::nanoseconds coarse_deadline = 500 * base::millisecond;

  /// `spin_us` < 0: by free cores. The page outlives the waiter; without one (a job of one) waiting only
  /// yields.
  /// The gate is let go of while a thread sleeps, and offered to others between looks.
  waiter(const base::job_page* page, std::uint32_t local_index, std::int64_t spin_us, gate& inside) noexcept;
  ~waiter();
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  /// Runs `look` until it returns true. `look()` makes one tick of progress and returns true when the wait is
  /// over or the caller wants to see something; `arm()` returns false if something arrived meanwhile;
  /// `disarm()` undoes it.
  template <class Look, class Arm, class Disarm>
  void wait(Look&& look, Arm&& arm, Disarm&& disarm);

  /// Something was moved by one thread that another one may sleep for.
  void call_sleepers() noexcept {
    if (sleepers_ != 0) base::ring(page_->bell(local_index_));
  }

  /// From now on a wait calls this between its looks, and neither spins nor sleeps. Only without a job page, and with a
  /// spin of 0.
  void take_turns(void (*next)(void*) noexcept, void* argument) noexcept {
    next_turn_ = next;
    turn_argument_ = argument;
  }

  /// How long spinning is worth while at this moment.
  base::nanoseconds spin_budget() const noexcept;

 private:
  void note_wait(base::nanoseconds took) noexcept { last_wait_ = took; }
  void begin_sleep(std::uint32_t& seen) noexcept;
  void end_sleep() noexcept;
  void sleep(std::uint32_t seen, base::nanoseconds at_most) noexcept;
  void yield() noexcept;
  std::uint32_t word() const noexcept;

  const base::job_page* page_;
  std::uint32_t local_index_;
  gate& gate_;
  int sleepers_ = 0;  ///< threads between begin_sleep and end_sleep; guarded by the gate
  base::nanoseconds fixed_spin_;  ///< < 0: by free cores
  base::nanoseconds last_wait_ = 0;
  void (*next_turn_)(void*) noexcept = nullptr;
  void* turn_argument_ = nullptr;
};

void yield_cpu() noexcept;

template <class Look, class Arm, class Disarm>
void waiter::wait(Look&& look_inside, Arm&& arm, Disarm&& disarm) {
  auto look = [&] {
    if (look_inside()) return true;
    gate_.pass();
    return false;
  };
  // Reading the clock costs as much as several looks, so only every 64th look does.
  constexpr int looks_per_clock = 64;
  for (int i = 0; i < looks_per_clock; ++i)
    if (look()) return;
  const base::nanoseconds start = base::steady_now();
  base::nanoseconds now = start;
  auto over = [&] {
    note_wait(base::steady_now() - start);
    return;
  };
  for (const base::nanoseconds limit = start + spin_budget(); now < limit; now = base::steady_now())
    for (int i = 0; i < looks_per_clock; ++i)
      if (look()) return over();

  const base::nanoseconds yield_until =
      now + (2 * last_wait_ < longest_yield ? 2 * last_wait_ : longest_yield) + 20 * base::microsecond;
  for (; now < yield_until && next_turn_ == nullptr; now = base::steady_now()) {
    yield();
    if (look()) return over();
  }
  if (page_ == nullptr) {
    constexpr unsigned looks_per_arm = 4096;  // its answer does not matter here, but it may have something to say
    for (unsigned i = 1; !look(); ++i) {
      yield();
      if (i % looks_per_arm == 0) static_cast<void>(arm());
    }
    disarm();
    return over();
  }
  std::uint32_t seen = 0;
  begin_sleep(seen);
  for (base::nanoseconds at_most = first_sleep;; at_most = coarse_deadline) {
    const base::nanoseconds allowed = arm();
    if (look_inside()) break;  // nobody comes in between, so nothing is missed
    if (allowed > 0) sleep(seen, allowed < at_most ? allowed : at_most);
    seen = word();
    if (look()) break;
  }
  disarm();
  end_sleep();
  over();
}

}  // namespace verbena::runtime
