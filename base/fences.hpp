// The fences and the spin hint, in one place because GCC's thread sanitizer does not understand a bare
// atomic_thread_fence: under it each becomes a locked operation on a dummy word, which it does understand.
#pragma once

#include <atomic>

namespace verbena::base {

#if defined(__SANITIZE_THREAD__)
inline void full_fence() noexcept {
  static std::atomic<int> dummy{0};
  dummy.fetch_add(0, std::memory_order_seq_cst);
}
#else
inline void full_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
#endif

/// Tells the core that this is a spin loop; no memory order.
inline void spin_hint() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace verbena::base
