// The prefetch for writing, for which there is no portable word.
#pragma once

namespace verbena::base {

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
