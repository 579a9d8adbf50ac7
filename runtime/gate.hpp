// Who is inside a context: at thread level `single` anybody, unchecked; at `multiple` one thread at a time. Every call of
// the interface enters at its beginning and leaves at its end; one that waits lets the others in between its looks and
// while it sleeps (runtime/waiter.hpp). It must not know what is done inside.
#pragma once

#include <sched.h>

#include <atomic>
#include <cassert>
#include <mutex>
#include <thread>
#include <utility>

namespace verbena::runtime {

class gate {
 public:
  /// From now on threads are kept apart. Before the second one comes.
  void keep_apart() noexcept { many_ = true; }
  bool keeps_apart() const noexcept { return many_; }

  void leave() noexcept {
    assert(here());
    if (--depth_ == 0) open();
  }

  /// A waiting thread gives its place to those at the gate, if there are any.
  void pass() noexcept {
    if (!many_ || waiting_.load(std::memory_order_relaxed) == 0) return;
    const int depth = step_out();
    ::sched_yield();  // who was woken takes some time to come; without this it finds the gate closed again
    step_in(depth);
  }

  /// Leaves altogether, however often this thread has entered; the result is for step_in. Whoever waits has entered.
  int step_out() noexcept {
    if (!many_) return 0;
    assert(here());
    const int depth = std::exchange(depth_, 0);
    open();
    return depth;
  }
  void step_in(int depth) noexcept {
    if (!many_) return;
    if (!here()) {
      if (!inside_.try_lock()) {
        waiting_.fetch_add(1, std::memory_order_relaxed);
        inside_.lock();
        waiting_.fetch_sub(1, std::memory_order_relaxed);
      }
      owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    depth_ += depth;
  }

 private:
  /// Relaxed: only this thread can have written its own name there.
  bool here() const noexcept { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  void open() noexcept {
    owner_.store(std::thread::id{}, std::memory_order_relaxed);
    inside_.unlock();
  }

  bool many_ = false;
  int depth_ = 0;  ///< how often the owner has entered; guarded by the gate itself
  std::atomic<std::thread::id> owner_{};
  std::atomic<int> waiting_{0};
  std::mutex inside_;
};

/// Inside for the life of this object.
class [[nodiscard]] entrance {
 public:
  explicit entrance(gate& at) noexcept : at_(at.keeps_apart() ? &at : nullptr) {
    if (at_ != nullptr) [[unlikely]]
      at_->step_in(1);
  }
  entrance(const entrance&) = delete;
  entrance& operator=(const entrance&) = delete;
  ~entrance() {
    if (at_ != nullptr) [[unlikely]]
      at_->leave();
  }

 private:
  gate* const at_;
};

}  // namespace verbena::runtime
