// What the tests of TCP share: endpoints over the loopback that record what they see, a proxy that cuts connections and loses
// what is under way, and a stranger with a plain socket.
#pragma once

#include "tests/unit/shm_node.hpp"
#include "transport/sim/random.hpp"
#include "transport/tcp/tcp_fabric.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace verbena::tests {

namespace tcp = transport::tcp;
using transport::envelope;
using transport::peer;
using transport::post_result;

/// Number, size and bytes of each packet are known to its receiver.
struct counting_sink {
  std::uint64_t due = 0;
  std::uint64_t wrong = 0;
  std::vector<errc> downs;
  void on_packet(peer, envelope head, std::span<const std::byte> bytes) noexcept {
    const bool right = head.first == due && head.second == bytes.size() &&
                       testing::matches(bytes.data(), head.first, bytes.size()) && downs.empty();
    if (!right) ++wrong;
    ++due;
  }
  void on_flag(peer, std::uint64_t) noexcept { ++wrong; }
  void on_peer_down(peer, errc why) noexcept { downs.push_back(why); }
  void on_limits_changed(peer) noexcept {}
};

inline post_result send_numbered(tcp::tcp_fabric& from, peer to, std::uint64_t number, std::size_t bytes) {
  return from.send(to, {number, bytes}, bytes, [&](std::byte* room) { testing::fill(room, number, bytes); });
}

inline tcp::options on_loopback(base::nanoseconds link_timeout = 10 * base::second) {
  tcp::options how;
  how.only_this_host = true;
  how.link_timeout = link_timeout;
  return how;
}

/// Ranks 0 and 1 of a job of two, each with a sink. Time is the real one plus what `skip` adds.
struct tcp_pair {
  tcp::secret key = tcp::make_secret();
  std::array<std::unique_ptr<tcp::tcp_fabric>, 2> fabrics;
  std::array<counting_sink, 2> seen;
  std::array<std::uint64_t, 2> sent{};
  std::vector<tcp::address> also;  ///< addresses that each believes the other to have, before its own
  base::nanoseconds skipped = 0;

  explicit tcp_pair(const tcp::options& how = on_loopback(), const base::job_page* page = nullptr) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      fabrics[i] = std::make_unique<tcp::tcp_fabric>(peer{i}, 2, page, how);
      fabrics[i]->trust(key, "pair");
    }
  }
  /// The processes end, and wait for nobody.
  ~tcp_pair() {
    for (auto& f : fabrics)
      if (f) f->inside()->die();
  }
  tcp_pair(const tcp_pair&) = delete;
  tcp_pair& operator=(const tcp_pair&) = delete;
  /// Each reaches the other over these ports; 0: directly.
  void attach(std::uint16_t to_zero = 0, std::uint16_t to_one = 0) {
    attach_one(0, to_one);
    attach_one(1, to_zero);
  }
  std::uint16_t port(std::uint32_t i) { return tcp::decode_contact(fabrics[i]->address())->port; }
  tcp::endpoint& end(std::uint32_t i) { return *fabrics[i]->inside(); }

  base::nanoseconds now() const { return base::steady_now() + skipped; }
  void poll() {
    for (std::uint32_t i = 0; i < 2; ++i)
      if (fabrics[i]) fabrics[i]->poll(now(), seen[i]);
  }
  bool post(std::uint32_t from, std::size_t bytes) {
    if (send_numbered(*fabrics[from], peer{1 - from}, sent[from], bytes) != post_result::done) return false;
    ++sent[from];
    return true;
  }
  /// Polls until it holds, at most so long in real time.
  bool until(const std::function<bool()>& holds, base::nanoseconds limit = 20 * base::second) {
    for (const base::nanoseconds end = base::steady_now() + limit; !holds(); poll())
      if (base::steady_now() > end) return false;
    return true;
  }
  bool all_arrived() const { return seen[0].due == sent[1] && seen[1].due == sent[0]; }
  bool connect() {
    return until([&] { return sent[0] != 0 || post(0, 8); }) && until([&] { return all_arrived(); });
  }

 private:
  void attach_one(std::uint32_t i, std::uint16_t by) {
    tcp::contact there = *tcp::decode_contact(fabrics[1 - i]->address());
    if (by != 0) there.port = by;
    there.addresses.insert(there.addresses.begin(), also.begin(), also.end());
    if (!fabrics[i]->attach(peer{1 - i}, tcp::encode(there)))
      throw std::runtime_error(fabrics[i]->explain(peer{1 - i}));
  }
};

/// Where somebody listens, at 127.0.0.2, who takes all calls and never says a word.
struct tarpit {
  explicit tarpit(std::uint16_t port) : listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(listener.get(), 64) != 0)
      throw std::runtime_error("the tarpit cannot listen");
  }
  static tcp::address where() {
    tcp::address a;
    a.family = 4;
    a.within = tcp::reach::loopback;
    a.bytes = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{2}};
    return a;
  }
  base::unique_fd listener;
};

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

/// Passes bytes on between whoever calls its port and the port behind it, and cuts connections as it likes.
class proxy {
 public:
  explicit proxy(std::uint16_t target)
      : target_(target), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in at = loopback(0);
    socklen_t bytes = sizeof at;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), bytes) != 0 ||
        ::listen(listener_.get(), 64) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &bytes) != 0)
      throw std::runtime_error("the proxy cannot listen");
    port_ = ntohs(at.sin_port);
  }
  std::uint16_t port() const { return port_; }
  std::size_t passed = 0;
  std::vector<std::byte> first_bytes;  ///< what the first caller said
  bool refuses = false;                ///< closes whoever calls

  void pump(transport::sim::random_source& random, std::uint32_t cut_ppm) {
    if (const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK); fd >= 0) {
      two made{base::unique_fd{fd},
               base::unique_fd{::socket(AF_INET, SOCK_STREAM, 0)},
               {},
               {},
               pairs_made_++ == 0};
      sockaddr_in at = loopback(target_);
      if (!refuses && ::connect(made.out.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
        pairs_.push_back(std::move(made));
    }
    for (std::size_t i = 0; i < pairs_.size();) {
      two& p = pairs_[i];
      const bool lives = !refuses && move(p.in.get(), p.out.get(), p.forth, random, p.first) &&
                         move(p.out.get(), p.in.get(), p.back, random, false) && !random.chance(cut_ppm);
      if (lives) {
        ++i;
      } else {
        pairs_[i] = std::move(pairs_.back());
        pairs_.pop_back();
      }
    }
  }

 private:
  struct two {
    base::unique_fd in, out;
    std::vector<std::byte> forth, back;  ///< taken from one and not given to the other yet: lost by a cut
    bool first;
  };
  bool move(int from, int to, std::vector<std::byte>& between, transport::sim::random_source& random,
            bool keep) {
    if (between.empty()) {
      between.resize(1 + random.below(random.below(4) == 0 ? 40 : 30'000));
      const ssize_t got = ::recv(from, between.data(), between.size(), MSG_DONTWAIT);
      between.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
      if (keep) first_bytes.insert(first_bytes.end(), between.begin(), between.end());
    }
    if (between.empty() || random.below(3) == 0) return true;
    const ssize_t gone = ::send(to, between.data(), between.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (gone < 0) return errno == EAGAIN;
    passed += static_cast<std::size_t>(gone);
    between.erase(between.begin(), between.begin() + gone);
    return true;
  }

  std::uint16_t target_, port_ = 0;
  base::unique_fd listener_;
  std::vector<two> pairs_;
  int pairs_made_ = 0;
};

/// Somebody with a socket.
class stranger {
 public:
  explicit stranger(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in at = loopback(port);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
      throw std::runtime_error("a stranger cannot connect");
  }
  void say(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t gone = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (gone <= 0) return;
      bytes = bytes.subspan(static_cast<std::size_t>(gone));
    }
  }
  /// What has come, without waiting.
  std::size_t hear(std::span<std::byte> room) {
    const ssize_t got = ::recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) closed_ = true;
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  /// The other end has hung up.
  bool closed() {
    std::array<std::byte, 256> room;
    while (hear(room) != 0) {
    }
    return closed_;
  }

 private:
  base::unique_fd fd_;
  bool closed_ = false;
};

}  // namespace verbena::tests
