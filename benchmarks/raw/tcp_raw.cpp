// What TCP can do without anybody's library: a ping-pong of two processes over the loopback, or between two hosts, that spin on
// non-blocking sockets with TCP_NODELAY; or a stream of messages one way. The limits of the TCP fabric's latency and bandwidth.
//   tcp_raw [BYTES [ROUNDS]]                 two processes on this host
//   tcp_raw BYTES ROUNDS listen PORT         one end
//   tcp_raw BYTES ROUNDS ADDRESS PORT        the other, which prints
//   ... stream                               behind either: one way, and a byte back at the end
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void send_all(int fd, const std::vector<char>& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t gone = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (gone > 0)
      at += static_cast<std::size_t>(gone);
    else if (errno != EAGAIN)
      die("send");
  }
}

void receive_all(int fd, std::vector<char>& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::recv(fd, bytes.data() + at, bytes.size() - at, MSG_DONTWAIT);
    if (got > 0)
      at += static_cast<std::size_t>(got);
    else if (got == 0 || errno != EAGAIN)
      die("recv");
  }
}

void play(int fd, std::size_t size, int rounds, bool first) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  std::vector<char> out(size, 'x'), in(size);
  const int warm = rounds / 10;
  auto start = std::chrono::steady_clock::now();
  for (int i = -warm; i < rounds; ++i) {
    if (i == 0) start = std::chrono::steady_clock::now();
    if (first) send_all(fd, out);
    receive_all(fd, in);
    if (!first) send_all(fd, out);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (first) std::printf("%zu B one way: %.2f us\n", size, took.count() / rounds / 2);
}

void stream(int fd, std::size_t size, int rounds, bool first) {
  std::vector<char> message(size, 'x'), word(1);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) {
    if (first)
      send_all(fd, message);
    else
      receive_all(fd, message);
  }
  if (first)
    receive_all(fd, word);
  else
    send_all(fd, word);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (first)
    std::printf("%zu B: %.2f MB/s\n", size, static_cast<double>(size) * rounds / took.count());
}

int listener(int port, sockaddr_in& at) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t bytes = sizeof at;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&at), bytes) != 0 || ::listen(fd, 1) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes) != 0)
    die("listen");
  return fd;
}

int dial(const sockaddr_in& at) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) die("connect");
  return fd;
}

}  // namespace

int main(int count, char** words) {
  const std::size_t size = count > 1 ? std::strtoul(words[1], nullptr, 10) : 8;
  const int rounds = count > 2 ? std::atoi(words[2]) : 20'000;
  sockaddr_in at{};
  if (count > 4) {
    const std::string how = words[3];
    const auto run = count > 5 && std::strcmp(words[5], "stream") == 0 ? stream : play;
    const int port = std::atoi(words[4]);
    if (how == "listen") {
      run(::accept(listener(port, at), nullptr, nullptr), size, rounds, false);
      return 0;
    }
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::inet_pton(AF_INET, how.c_str(), &at.sin_addr) != 1) die("address");
    run(dial(at), size, rounds, true);
    return 0;
  }
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = listener(0, at);
  if (::fork() == 0) {
    play(dial(at), size, rounds, false);
    ::_exit(0);
  }
  play(::accept(fd, nullptr, nullptr), size, rounds, true);
  ::wait(nullptr);
  return 0;
}
