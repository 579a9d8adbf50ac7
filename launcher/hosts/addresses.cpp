#include "launcher/hosts/addresses.hpp"

#include "base/fd.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

namespace verbena::launcher {
namespace {

/// Empty for what no other host can use.
std::string in_words(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    if ((ntohl(v4->sin_addr.s_addr) >> 24) == 127) return {};
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return {};
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

/// Connecting a datagram socket sends nothing, and asks the kernel for the way.
std::string source_towards(const addrinfo& target) {
  const base::unique_fd probe{::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!probe || ::connect(probe.get(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return {};
  return in_words(reinterpret_cast<const sockaddr*>(&own));
}

void add(std::vector<std::string>& list, const std::string& address) {
  if (!address.empty() && std::find(list.begin(), list.end(), address) == list.end()) list.push_back(address);
}

}  // namespace

std::vector<std::string> own_addresses(const std::vector<std::string>& hosts, const base::interface_list& allowed) {
  std::vector<std::string> all, found;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner{interfaces, ::freeifaddrs};
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next)
    if (each->ifa_addr != nullptr && (each->ifa_flags & IFF_UP) != 0 && allowed.allows(each->ifa_name, *each->ifa_addr))
      add(all, in_words(each->ifa_addr));
  for (const std::string& host : hosts) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_DGRAM;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host.c_str(), "9", &wanted, &list) != 0) continue;
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> answer{list, ::freeaddrinfo};
    for (const addrinfo* each = list; each != nullptr; each = each->ai_next)
      if (const std::string source = source_towards(*each); std::find(all.begin(), all.end(), source) != all.end())
        add(found, source);
  }
  for (const std::string& each : all) add(found, each);
  return found;
}

}  // namespace verbena::launcher
