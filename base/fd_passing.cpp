#include "base/fd_passing.hpp"

#include "base/check.hpp"

#include <cstring>

namespace verbena::base {

void attach_fds(msghdr& message, fd_control& room, std::span<const int> fds) noexcept {
  check(!fds.empty() && fds.size() <= most_passed_fds, "so many descriptors do not go with one message");
  message.msg_control = room.bytes.data();
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
}

void expect_fds(msghdr& message, fd_control& room) noexcept {
  message.msg_control = room.bytes.data();
  message.msg_controllen = room.bytes.size();
}

void take_fds(const msghdr& message, std::span<unique_fd> into) noexcept {
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) return;
  const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights) + i * sizeof number, sizeof number);
    unique_fd owned{number};
    if (i < into.size()) into[i] = std::move(owned);
  }
}

abstract_address::abstract_address(std::string_view name) noexcept {
  check(!name.empty() && name.size() < sizeof where.sun_path, "the name of an abstract socket is too long");
  where.sun_family = AF_UNIX;
  name.copy(where.sun_path + 1, name.size());  // the leading zero makes it abstract
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace verbena::base
