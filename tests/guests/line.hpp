// A socket between two guests, by which the two sides of a test agree and exchange addresses. Messages have a topic: who
// listens for one drops what is left of older ones, so that a side that died in the middle leaves nothing behind.
#pragma once

#include "base/fd.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace verbena::tests {

class line {
 public:
  /// Guest 1 listens, the others call. Throws if nobody comes within a minute, as all members do.
  explicit line(int guest) {
    base::unique_fd made{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(7000);
    ::inet_pton(AF_INET, "10.0.0.1", &where.sin_addr);
    const auto* const address = reinterpret_cast<const sockaddr*>(&where);
    const timeval patience{60, 0};
    ::setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);  // accept obeys it, too
    if (guest == 1) {
      if (::bind(made.get(), address, sizeof where) != 0 || ::listen(made.get(), 1) != 0) fail("listen");
      socket_ = base::unique_fd{::accept4(made.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (!socket_) fail("accept");
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    } else {
      for (int i = 0; ::connect(made.get(), address, sizeof where) != 0; ++i) {
        if (i == 600) fail("connect");
        ::usleep(100'000);
        made = base::unique_fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        ::setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      }
      socket_ = std::move(made);
    }
  }

  void talk_about(std::uint32_t topic) noexcept { topic_ = topic; }

  void say(std::span<const std::byte> what) {
    const std::uint32_t head[2] = {topic_, static_cast<std::uint32_t>(what.size())};
    put(std::as_bytes(std::span(head)));
    put(what);
  }
  std::vector<std::byte> hear() {
    for (;;) {
      std::uint32_t head[2] = {};
      get(std::as_writable_bytes(std::span(head)));
      std::vector<std::byte> what(head[1]);
      get(what);
      if (head[0] == topic_) return what;
      if (head[0] > topic_) throw std::runtime_error("the other guest is ahead");
    }
  }
  template <class T>
  T exchange(const T& mine) {
    say(std::as_bytes(std::span(&mine, 1)));
    const std::vector<std::byte> theirs = hear();
    T value;
    if (theirs.size() != sizeof value) throw std::runtime_error("the other guest says something else");
    std::memcpy(&value, theirs.data(), sizeof value);
    return value;
  }
  /// Both are here.
  void meet() { exchange(char{1}); }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::runtime_error(fmt::format("the line between the guests: {}: {}", what, std::strerror(errno)));
  }
  void put(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) fail("send");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void get(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (n <= 0) fail("receive");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  base::unique_fd socket_;
  std::uint32_t topic_ = 0;
};

}  // namespace verbena::tests
