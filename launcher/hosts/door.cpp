#include "launcher/hosts/door.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace verbena::launcher {

door::door(event_loop& loop, const job_secret& secret, std::function<bool(std::uint32_t index)> is_wanted,
           std::function<void(std::uint32_t index, base::unique_fd)> on_proven)
    : loop_(loop), secret_(secret), is_wanted_(std::move(is_wanted)), on_proven_(std::move(on_proven)) {}

door::~door() {
  while (!strangers_.empty()) drop(strangers_.begin());
  for (const base::unique_fd& each : listeners_) loop_.forget(each.get());
}

bool door::listen(const std::string& address, base::port_range ports) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.c_str(), "0", &wanted, &list) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{list, ::freeaddrinfo};
  sockaddr_storage at{};
  std::memcpy(&at, list->ai_addr, std::min<std::size_t>(list->ai_addrlen, sizeof at));
  base::unique_fd socket = base::listen_within(at, list->ai_addrlen, ports, 1024);
  if (!socket) return false;
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  const std::uint16_t port = list->ai_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&bound)->sin_port
                                                        : reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port;
  places_.push_back(fmt::format("{} {}", address, ntohs(port)));
  loop_.watch(socket.get(), EPOLLIN, [this, index = listeners_.size()](std::uint32_t) { answer(index); });
  listeners_.push_back(std::move(socket));
  return true;
}

void door::answer(std::size_t listener) {
  while (true) {
    base::unique_fd caller{::accept4(listeners_[listener].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!caller) {
      if ((errno == EMFILE || errno == ENFILE) && !strangers_.empty()) drop(strangers_.begin());
      return;
    }
    if (strangers_.size() == most_strangers) drop(strangers_.begin());
    const auto who = strangers_.insert(strangers_.end(), stranger{});
    who->socket = std::move(caller);
    who->ours = draw_nonce();
    who->place = places_[listener];
    who->limit = loop_.after(patience, [this, who] {
      who->limit = 0;
      drop(who);
    });
    loop_.watch(who->socket.get(), EPOLLIN, [this, who](std::uint32_t) { hear(who); });
    const std::string challenge = make_challenge(who->ours);
    if (::send(who->socket.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL) !=
        static_cast<long>(challenge.size()))
      drop(who);
  }
}

void door::hear(std::list<stranger>::iterator who) {
  std::array<char, claim_bytes> bytes;
  const long count = ::recv(who->socket.get(), bytes.data(), claim_bytes - who->heard.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return drop(who);
  who->heard.append(bytes.data(), static_cast<std::size_t>(count));
  if (who->heard.size() < claim_bytes) return;
  const std::optional<claim> made = check_claim(
      secret_, {reinterpret_cast<const unsigned char*>(who->heard.data()), who->heard.size()}, who->ours, who->place);
  if (!made || !is_wanted_(made->index)) return drop(who);
  const std::string answer = make_answer(secret_, made->theirs, who->ours, who->place);
  if (::send(who->socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
      static_cast<long>(answer.size()))
    return drop(who);
  loop_.forget(who->socket.get());
  base::unique_fd socket = std::move(who->socket);
  drop(who);
  on_proven_(made->index, std::move(socket));
}

void door::drop(std::list<stranger>::iterator who) {
  if (who->limit != 0) loop_.cancel(who->limit);
  if (who->socket) loop_.forget(who->socket.get());
  strangers_.erase(who);
}

}  // namespace verbena::launcher
