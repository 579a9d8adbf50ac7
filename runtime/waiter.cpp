#include "runtime/waiter.hpp"

#include "base/futex.hpp"

#include <sched.h>

#include <atomic>

namespace verbena::runtime {
namespace {

// Long enough that a peer at work on a large copy does not find us asleep; short against anybody's patience.
constexpr base::nanoseconds spin_when_free = 50 * base::microsecond;

}  // namespace

void yield_cpu() noexcept {
  ::sched_yield();
}

waiter::waiter(const base::job_page* page, std::uint32_t local_index, std::int64_t spin_us, gate& inside) noexcept
    : page_(page), local_index_(local_index), gate_(inside), fixed_spin_(spin_us < 0 ? -1 : spin_us * base::microsecond) {
  if (page_ != nullptr) page_->header().awake.fetch_add(1, std::memory_order_relaxed);
}

waiter::~waiter() {
  if (page_ != nullptr) page_->header().awake.fetch_sub(1, std::memory_order_relaxed);
}

base::nanoseconds waiter::spin_budget() const noexcept {
  if (fixed_spin_ >= 0) return fixed_spin_;
  if (page_ == nullptr) return spin_when_free;
  // The launcher's cores, not this rank's mask: ranks that are bound to a core each have a core each.
  const auto cores = static_cast<std::int32_t>(page_->header().cores);
  return page_->header().awake.load(std::memory_order_relaxed) <= cores ? spin_when_free : 0;
}

std::uint32_t waiter::word() const noexcept {
  // Acquire: what the ringer stored before it rang is visible to the look that follows.
  return page_->bell(local_index_).word.load(std::memory_order_acquire);
}

void waiter::begin_sleep(std::uint32_t& seen) noexcept {
  seen = word();
  if (sleepers_++ != 0) return;  // the other thread's announcement holds
  page_->header().awake.fetch_sub(1, std::memory_order_relaxed);
  // Sequentially consistent, so that the looks that follow come after it in the order senders see.
  page_->bell(local_index_).sleeping.store(1, std::memory_order_seq_cst);
}

void waiter::end_sleep() noexcept {
  if (--sleepers_ != 0) return;
  page_->bell(local_index_).sleeping.store(0, std::memory_order_relaxed);
  page_->header().awake.fetch_add(1, std::memory_order_relaxed);
}

void waiter::yield() noexcept {
  if (next_turn_ != nullptr) return next_turn_(turn_argument_);
  const int depth = gate_.step_out();
  yield_cpu();
  gate_.step_in(depth);
}

void waiter::sleep(std::uint32_t seen, base::nanoseconds at_most) noexcept {
  const int depth = gate_.step_out();
  base::futex_wait(page_->bell(local_index_).word, seen, at_most);
  gate_.step_in(depth);
}

}  // namespace verbena::runtime
