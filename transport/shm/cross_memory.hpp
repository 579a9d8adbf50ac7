// Copies between this process's memory and a peer's by one system call (process_vm_readv / writev), and the
// trial that proves it: never assumed, for a container, a Yama setting, another user or another pid namespace
// may refuse it.
#pragma once

#include "transport/shm/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace verbena::transport::shm {

/// Both copy `bytes` completely (any size, split as the kernel wants) and return 0, or errno of what failed.
int read_peer(int pid, void* to, std::uint64_t from_address, std::uint64_t bytes) noexcept;
int write_peer(int pid, const void* from, std::uint64_t to_address, std::uint64_t bytes) noexcept;

/// Lets siblings read this process where Yama restricts that to descendants. No effect elsewhere.
void permit_peers() noexcept;

enum class proof : std::uint8_t {
  untried,   ///< not tried, or the peer has not joined yet
  proven,    ///< a trial value was read from the peer's memory
  refused,   ///< the kernel refused
  stranger,  ///< the pid on the card is another process here (pid namespaces)
  disabled,  ///< by the setting
};

struct trial_result {
  proof outcome = proof::untried;
  int error = 0;  ///< errno of `refused`
};

/// Reads the trial value of the peer whose card this is.
trial_result try_peer(const rank_card& card) noexcept;

/// How large messages go, as the second half of a sentence.
std::string describe(const trial_result& trial);

}  // namespace verbena::transport::shm
