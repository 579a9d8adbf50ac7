// How a member waits for a word of the node block, and wakes those who do. First it only looks; then it looks
// and makes progress while a core is free for that; then it yields; then it sleeps: for a short while on the
// release word (waiting for a gathering, if nobody needs its help), which wakes all sleepers with one system
// call; then on its doorbell.
//
// No wake is lost for long: a sleeper announces itself (bell_sleepers), looks again, and sleeps at most a
// millisecond the first time (runtime/waiter.hpp); a waker stores its news before it looks for sleepers. News
// stored after the sleeper's second look comes a millisecond after the announcement, so the waker sees that.
#pragma once

#include "base/prefetch.hpp"
#include "collectives/node_block.hpp"
#include "runtime/collective_port.hpp"

#include <cstdint>
#include <type_traits>

namespace verbena::collectives {

class node_wait {
 public:
  /// `crowded`: there are more members than cores, so whoever is waited for may need this one.
  node_wait(runtime::collective_port& port, node_view node, bool crowded) noexcept
      : port_(port), node_(node), quick_looks_(crowded ? 8 : 400) {}

  /// Until ready(). False: a member is dead and it is not ready.
  template <class Ready>
  bool until(Ready&& ready) noexcept {
    for (int i = 0; i < quick_looks_; ++i)
      if (ready()) [[likely]]
        return true;
    return slowly(call<std::remove_reference_t<Ready>>, &ready, false);
  }

  /// Until the gathering with this number is released, or enough() says that it is no use.
  template <class Enough>
  bool until_released(std::uint32_t number, Enough&& enough) noexcept {
    // The last one to release cannot be behind, and nobody gathers again before we leave: equal, not at
    // least.
    auto ready = [&word = node_.head().release, number, &enough]() noexcept {
      return word.load(std::memory_order_acquire) ==
                 number ||  // with what all members wrote before they arrived
             enough();
    };
    return ready() || slowly(call<decltype(ready)>, &ready, true);
  }

  /// After a store that a member may wait for. Costs one look at a line that is rarely written.
  void wake_bells() noexcept {
    if (node_.head().bell_sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring_all();
  }
  void release(std::uint32_t number) noexcept;

 private:
  using look = bool (*)(void*) noexcept;
  template <class Ready>
  static bool call(void* ready) noexcept {
    return (*static_cast<Ready*>(ready))();
  }

  bool slowly(look ready, void* argument, bool gathering) noexcept;
  bool asleep(look ready, void* argument, bool gathering) noexcept;
  void ring_all() noexcept;

  runtime::collective_port& port_;
  node_view node_;
  const int quick_looks_;  ///< 400 take less than two microseconds; a line comes in 0.05 to 0.4
  base::nanoseconds last_wait_ = 0;
};

}  // namespace verbena::collectives
