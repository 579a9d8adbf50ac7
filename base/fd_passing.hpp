// Handing descriptors to another process over a Unix socket (unix(7), SCM_RIGHTS), and the sockets without a file that
// they travel on. It must not know what the descriptors are.
#pragma once

#include "base/fd.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace verbena::base {

inline constexpr std::size_t most_passed_fds = 2;

/// Room for descriptors beside a message; lives as long as the msghdr that points to it.
struct fd_control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_passed_fds * sizeof(int))> bytes{};
};

/// Makes `message` carry copies of `fds` (1..most_passed_fds), which stay the caller's.
void attach_fds(msghdr& message, fd_control& room, std::span<const int> fds) noexcept;
/// Before recvmsg (with MSG_CMSG_CLOEXEC): there is room for descriptors.
void expect_fds(msghdr& message, fd_control& room) noexcept;
/// After recvmsg: the descriptors that came, in order; the others of `into` stay empty. What has no place is closed.
void take_fds(const msghdr& message, std::span<unique_fd> into) noexcept;

/// Address of a Unix socket in the abstract namespace: no file, gone with its listener. `name` has 1 to 107 bytes.
struct abstract_address {
  explicit abstract_address(std::string_view name) noexcept;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&where); }

  sockaddr_un where{};
  socklen_t length = 0;
};

}  // namespace verbena::base
