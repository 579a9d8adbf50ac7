#include "transport/tcp/address.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace verbena::transport::tcp {
namespace {

address from_ipv4(const in_addr& a) noexcept {
  address result;
  result.family = 4;
  std::memcpy(result.bytes.data(), &a, sizeof a);
  if (result.bytes[0] == std::byte{127}) result.within = reach::loopback;
  if (result.bytes[0] == std::byte{169} && result.bytes[1] == std::byte{254})
    result.within = reach::link_local;
  return result;
}

address from_ipv6(const in6_addr& a) noexcept {
  address result;
  result.family = 6;
  std::memcpy(result.bytes.data(), &a, sizeof a);
  if (IN6_IS_ADDR_LOOPBACK(&a)) result.within = reach::loopback;
  if (IN6_IS_ADDR_LINKLOCAL(&a)) result.within = reach::link_local;
  return result;
}

bool has_family(std::span<const address> all, std::uint8_t family) {
  return std::any_of(all.begin(), all.end(), [&](const address& a) { return a.family == family; });
}

int rank_of(const address& a) noexcept {
  const int by_family = a.family == 4 ? 0 : 1;
  switch (a.within) {
    case reach::loopback:
      return by_family;
    case reach::global:
      return 2 + by_family;
    case reach::link_local:
      return 4 + by_family;
  }
  return 6;
}

std::string text_of_socket(const sockaddr_storage& at, socklen_t bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  if (at.ss_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(at);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (at.ss_family != AF_INET6 || bytes < sizeof(sockaddr_in6)) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(at);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v6.sin6_port));
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  char name[IF_NAMESIZE] = {};
  const bool scoped = v6.sin6_scope_id != 0 && ::if_indextoname(v6.sin6_scope_id, name) != nullptr;
  return fmt::format("[{}{}{}]:{}", text, scoped ? "%" : "", scoped ? name : "", ntohs(v6.sin6_port));
}

}  // namespace

bool sane(const address& a) noexcept {
  if (a.within > reach::loopback || a.reserved != 0) return false;
  if (a.family == 6) return true;
  return a.family == 4 &&
         std::all_of(a.bytes.begin() + 4, a.bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

host_mark this_host() {
  host_mark mark{};
  if (const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); fd >= 0) {
    char text[37] = {};
    std::size_t digits = 0;
    if (::read(fd, text, 36) == 36)
      for (const char c : text) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0 || digits == 32) continue;
        mark[digits / 2] |= static_cast<std::byte>(digit << (digits % 2 == 0 ? 4 : 0));
        ++digits;
      }
    ::close(fd);
  }
  struct stat space {};
  if (::stat("/proc/thread-self/ns/net", &space) == 0) {
    const auto number = static_cast<std::uint64_t>(space.st_ino);
    std::memcpy(mark.data() + 16, &number, sizeof number);
  }
  return mark;
}

own_addresses find_addresses(bool only_this_host, const base::interface_list& allowed) {
  own_addresses found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    std::optional<address> a;
    if (i->ifa_addr->sa_family == AF_INET)
      a = from_ipv4(reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr);
    else if (i->ifa_addr->sa_family == AF_INET6)
      a = from_ipv6(reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr);
    if (!a || (only_this_host && a->within != reach::loopback)) continue;
    if (a->within != reach::loopback && !allowed.allows(i->ifa_name, *i->ifa_addr)) continue;
    if ((i->ifa_flags & IFF_LOOPBACK) != 0 && a->within != reach::loopback) continue;
    if (a->family == 6 && a->within == reach::link_local) {
      const std::uint32_t through = ::if_nametoindex(i->ifa_name);
      if (through != 0 && std::find(found.link_local_interfaces.begin(), found.link_local_interfaces.end(),
                                    through) == found.link_local_interfaces.end())
        found.link_local_interfaces.push_back(through);
    }
    if (std::find(found.all.begin(), found.all.end(), *a) == found.all.end()) found.all.push_back(*a);
  }
  std::stable_sort(found.all.begin(), found.all.end(),
                   [](const address& a, const address& b) { return rank_of(a) < rank_of(b); });
  return found;
}

std::vector<way> choose_ways(const own_addresses& mine, std::span<const address> theirs, bool same_host) {
  std::vector<way> ways;
  const auto add = [&](const address& to, std::uint32_t scope, bool later) {
    if (ways.size() < most_ways) ways.push_back({to, scope, later});
  };
  std::vector<address> sorted(theirs.begin(), theirs.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const address& a, const address& b) { return rank_of(a) < rank_of(b); });
  const bool over_loopback = same_host && std::any_of(sorted.begin(), sorted.end(), [](const address& a) {
                               return a.within == reach::loopback;
                             });
  for (const address& a : sorted) {
    if (!has_family(mine.all, a.family)) continue;
    const bool ours = std::find(mine.all.begin(), mine.all.end(), a) != mine.all.end();
    if (a.within == reach::loopback ? !same_host : ours && !same_host) continue;
    const bool later = over_loopback && a.within != reach::loopback;
    if (a.family == 6 && a.within == reach::link_local)
      for (const std::uint32_t through : mine.link_local_interfaces) add(a, through, later);
    else
      add(a, 0, later);
  }
  return ways;
}

std::size_t way_of_socket(std::span<const way> ways, int socket) noexcept {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  address to;
  std::uint32_t scope = 0;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 && at.ss_family == AF_INET) {
    to = from_ipv4(reinterpret_cast<const sockaddr_in&>(at).sin_addr);
  } else if (at.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(at).sin6_addr;
    in_addr v4{};
    std::memcpy(&v4, v6.s6_addr + 12, sizeof v4);
    to = IN6_IS_ADDR_V4MAPPED(&v6) ? from_ipv4(v4) : from_ipv6(v6);
    if (to.within == reach::link_local && to.family == 6)
      scope = reinterpret_cast<const sockaddr_in6&>(at).sin6_scope_id;
  }
  const auto found =
      std::find_if(ways.begin(), ways.end(), [&](const way& w) { return w.to == to && w.scope == scope; });
  return found == ways.end() ? no_way : static_cast<std::size_t>(found - ways.begin());
}

sockaddr_storage socket_address(const address& a, std::uint16_t port, std::uint32_t scope,
                                socklen_t& bytes) noexcept {
  sockaddr_storage result{};
  if (a.family == 4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(result);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, a.bytes.data(), sizeof v4.sin_addr);
    bytes = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(result);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_scope_id = scope;
    std::memcpy(&v6.sin6_addr, a.bytes.data(), sizeof v6.sin6_addr);
    bytes = sizeof v6;
  }
  return result;
}

std::string local_text(int socket) {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 ? text_of_socket(at, bytes)
                                                                              : std::string{};
}

std::string remote_text(int socket) {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 ? text_of_socket(at, bytes)
                                                                              : std::string{};
}

std::string text_of(const address& a) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(a.family == 4 ? AF_INET : AF_INET6, a.bytes.data(), text, sizeof text);
  return text;
}

}  // namespace verbena::transport::tcp
