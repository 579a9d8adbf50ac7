#include "transport/shm/cross_memory.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::transport::shm {
namespace {

using vm_copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

int copy(vm_copy call, int pid, std::byte* local, std::uint64_t remote, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t longest = 0x7ffff000;  // MAX_RW_COUNT: the kernel copies no more in one call
  while (bytes > 0) {
    const std::uint64_t piece = std::min(bytes, longest);
    const iovec here{local, piece};
    const iovec there{reinterpret_cast<void*>(remote), piece};
    const ssize_t moved_bytes = call(pid, &here, 1, &there, 1, 0);
    if (moved_bytes <= 0) {
      if (moved_bytes < 0 && errno == EINTR) continue;
      return moved_bytes < 0 && errno != 0 ? errno : EIO;
    }
    // A short copy stopped at a bad page; the next round says which error.
    local += moved_bytes;
    remote += static_cast<std::uint64_t>(moved_bytes);
    bytes -= static_cast<std::uint64_t>(moved_bytes);
  }
  return 0;
}

}  // namespace

int read_peer(int pid, void* to, std::uint64_t from_address, std::uint64_t bytes) noexcept {
  return copy(::process_vm_readv, pid, static_cast<std::byte*>(to), from_address, bytes);
}

int write_peer(int pid, const void* from, std::uint64_t to_address, std::uint64_t bytes) noexcept {
  return copy(::process_vm_writev, pid, const_cast<std::byte*>(static_cast<const std::byte*>(from)),
              to_address, bytes);
}

void permit_peers() noexcept {
#ifdef PR_SET_PTRACER
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // EINVAL without Yama: nothing to permit
#endif
}

trial_result try_peer(const rank_card& card) noexcept {
  if (card.joined.load(std::memory_order_acquire) != 1) return {};  // pairs with the store of a filled card
  std::uint64_t seen = 0;
  const int error = read_peer(static_cast<int>(card.pid), &seen, card.trial_address, sizeof seen);
  if (error == ESRCH || error == EFAULT) return {proof::stranger, error};
  if (error != 0) return {proof::refused, error};
  return {seen == card.trial_value ? proof::proven : proof::stranger, 0};
}

std::string describe(const trial_result& trial) {
  switch (trial.outcome) {
    case proof::proven:
      return "large messages are copied once, by both ends (process_vm_readv proven)";
    case proof::refused:
      return fmt::format("large messages are streamed: process_vm_readv refused ({})",
                         std::strerror(trial.error));
    case proof::stranger:
      return "large messages are streamed: the peer's pid means another process here (pid namespaces)";
    case proof::disabled:
      return "large messages are streamed: single copy is switched off";
    case proof::untried:
      break;
  }
  return "single copy is not tried yet";
}

}  // namespace verbena::transport::shm
