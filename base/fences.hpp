// The fences, the spin hint and the prefetch for writing, in one place because GCC's thread sanitizer does
// not understand a bare atomic_thread_fence: under it each becomes a locked operation on a dummy word, which
// it does understand.
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

/// Asks for the cache line at `at` in the state in which it can be written; never faults. The baseline's
/// compiler builtin would fetch it for reading only; processors without the instruction take it as a
/// no-operation.
inline void prefetch_for_write(const void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace verbena::base
