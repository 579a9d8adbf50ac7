#include "base/network.hpp"

#include "base/number.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::base {
namespace {

/// The bytes of an address in network order; nullptr for a family that has none here.
const std::byte* bytes_of(const sockaddr& address) noexcept {
  if (address.sa_family == AF_INET)
    return reinterpret_cast<const std::byte*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  if (address.sa_family == AF_INET6)
    return reinterpret_cast<const std::byte*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return nullptr;
}

bool same_bits(const std::byte* a, const std::byte* b, unsigned bits) noexcept {
  if (std::memcmp(a, b, bits / 8) != 0) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || std::to_integer<unsigned>((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

void set_port(sockaddr_storage& address, std::uint16_t port) noexcept {
  if (address.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
}

}  // namespace

bool interface_list::parse_network(std::string_view text, network& into) {
  const std::size_t slash = text.find('/');
  const std::string address{text.substr(0, slash)};
  into.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const unsigned most = into.family == AF_INET ? 32 : 128;
  return ::inet_pton(into.family, address.c_str(), into.bytes.data()) == 1 &&
         parse_number(text.substr(slash + 1), into.bits) && into.bits <= most;
}

bool interface_list::parse(std::string_view text, interface_list& into) {
  interface_list list;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    if (part.empty()) return false;
    if (part.find('/') == std::string_view::npos) {
      list.names_.emplace_back(part);
    } else {
      network one;
      if (!parse_network(part, one)) return false;
      list.networks_.push_back(one);
    }
    text.remove_prefix(comma);
    if (text == ",") return false;
    if (!text.empty()) text.remove_prefix(1);
  }
  into = std::move(list);
  return true;
}

bool interface_list::allows(std::string_view name, const sockaddr& address) const noexcept {
  if (empty()) return true;
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return true;
  const std::byte* const bytes = bytes_of(address);
  return bytes != nullptr && std::any_of(networks_.begin(), networks_.end(), [&](const network& n) {
           return n.family == address.sa_family && same_bits(bytes, n.bytes.data(), n.bits);
         });
}

bool port_range::parse(std::string_view text, port_range& into) {
  const std::size_t colon = text.find(':');
  port_range range;
  if (!parse_number(text.substr(0, colon), range.low)) return false;
  range.high = range.low;
  if (colon != std::string_view::npos && !parse_number(text.substr(colon + 1), range.high)) return false;
  if (range.low == 0 || range.high < range.low) return false;
  into = range;
  return true;
}

unique_fd listen_within(sockaddr_storage address, socklen_t bytes, port_range range, int backlog, bool both_families) {
  const bool any = range == port_range{};
  const unsigned count = any ? 1U : range.high - range.low + 1U;
  unsigned first = 0;  // ranks that start together do not all ask for the same port
  if (!any && ::getrandom(&first, sizeof first, 0) != sizeof first) first = 0;
  for (unsigned i = 0; i < count; ++i) {
    unique_fd fd{::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!fd) return {};
    const int yes = 1, no = 0;
    if (both_families) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    // Connections of a job that has ended keep its port for a minute; they do not keep others from listening there.
    if (!any) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    set_port(address, any ? std::uint16_t{0} : static_cast<std::uint16_t>(range.low + (first % count + i) % count));
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && ::listen(fd.get(), backlog) == 0)
      return fd;
    if (errno != EADDRINUSE && errno != EACCES) return {};
  }
  return {};
}

namespace {

void set(int socket, int level, int option, int value) noexcept {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

int whole_seconds(nanoseconds timeout) noexcept {
  return static_cast<int>(std::clamp<nanoseconds>(timeout / second, 1, 100'000));
}

}  // namespace

void ask_often(int socket, nanoseconds timeout) noexcept {
  const int question = std::max(1, whole_seconds(timeout) / 10);
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, question);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, question);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 20);  // twice the time: who watches is earlier
}

void watch_link(int socket, nanoseconds timeout) noexcept {
  ask_often(socket, timeout);
  // From the last sign of life on, which may be one question old when the link breaks.
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, whole_seconds(timeout) * 1000 + 500);
}

}  // namespace verbena::base
