#include "runtime/bootstrap/inherited_segment.hpp"

#include "base/fd_passing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <verbena/error.hpp>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace verbena::runtime {
namespace {

bool is_inode(int fd, ino_t inode) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && about.st_ino == inode && S_ISREG(about.st_mode);
}

[[noreturn]] void fail(const char* call) {
  throw error(
      errc::system,
      fmt::format("cannot get the node's shared segment from rdmarun: {}: {} (the inherited descriptor was "
                  "closed by a wrapper, and the launcher's socket is the second way)",
                  call, std::strerror(errno)));
}

base::unique_fd ask_launcher(const std::string& name) {
  const base::unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket) fail("socket");
  const timeval patience{10, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);  // bounds connect as well
  const base::abstract_address address(name);
  while (::connect(socket.get(), address.get(), address.length) != 0)
    if (errno != EINTR) fail("connect");

  char byte = 0;
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  base::fd_control control;
  base::expect_fds(message, control);
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) fail("recvmsg");
  base::unique_fd segment;
  base::take_fds(message, {&segment, 1});
  if (!segment) {
    errno = EPROTO;
    fail("recvmsg");
  }
  return segment;
}

}  // namespace

base::unique_fd find_inherited_segment(const std::string& variable) {
  const char* const end = variable.data() + variable.size();
  int fd = -1;
  std::uint64_t inode = 0;
  const auto first = std::from_chars(variable.data(), end, fd);
  const bool colon = first.ec == std::errc{} && first.ptr != end && *first.ptr == ':';
  const auto second = colon ? std::from_chars(first.ptr + 1, end, inode) : first;
  constexpr std::ptrdiff_t longest_name = sizeof(sockaddr_un::sun_path) - 1;
  if (!colon || second.ec != std::errc{} || end - second.ptr < 2 || *second.ptr != ':' ||
      end - second.ptr - 1 > longest_name)
    throw error(errc::malformed,
                fmt::format("VERBENA_SEGMENT='{}' is not FD:INODE:NAME as rdmarun sets it", variable));

  if (is_inode(fd, inode)) {
    base::unique_fd copy{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    if (!copy) fail("fcntl");
    return copy;
  }
  base::unique_fd fresh = ask_launcher({second.ptr + 1, end});
  if (!is_inode(fresh.get(), inode))
    throw error(errc::malformed,
                "the launcher's socket handed out something else than the node's shared segment");
  return fresh;
}

}  // namespace verbena::runtime
