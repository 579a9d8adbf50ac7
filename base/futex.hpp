// Shared futex on a 32-bit word in a mapping: sleep while it holds a value, wake sleepers in any process.
#pragma once

#include "base/clock.hpp"

#include <atomic>
#include <cstdint>

namespace verbena::base {

/// Sleeps until woken, until `timeout` passes, or not at all if `word` no longer holds `seen`. Spurious
/// returns are allowed; `timeout` may be `never`.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, nanoseconds timeout) noexcept;

/// Wakes up to `count` sleepers.
void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace verbena::base
