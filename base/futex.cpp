#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbena::base {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "the kernel looks at the word itself");

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, nanoseconds timeout) noexcept {
  timespec limit{static_cast<time_t>(timeout / second), static_cast<long>(timeout % second)};
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen,
            timeout == never ? nullptr : &limit, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) noexcept {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace verbena::base
