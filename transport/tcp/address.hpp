// Addresses of hosts: which this one has, and which pairs of ours and a peer's are worth trying. What the kernel says
// (getifaddrs), never what resolving one's own name says. The choice is a pure function.
#pragma once

#include "base/network.hpp"

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace verbena::transport::tcp {

enum class reach : std::uint8_t { global = 0, link_local = 1, loopback = 2 };

struct address {
  std::uint8_t family = 0;  ///< 4 or 6
  reach within = reach::global;
  std::uint16_t reserved = 0;
  std::array<std::byte, 16> bytes{};  ///< network order; IPv4: the first four, then zeros
  friend bool operator==(const address&, const address&) = default;
};
static_assert(sizeof(address) == 20);

/// False: no address that this release knows of (for what came from elsewhere).
bool sane(const address& a) noexcept;

/// Tells kernels and their network namespaces apart: ranks with equal marks have one loopback.
using host_mark = std::array<std::byte, 24>;
host_mark this_host();

struct own_addresses {
  std::vector<address> all;                          ///< of interfaces that are up, without doubles
  std::vector<std::uint32_t> link_local_interfaces;  ///< through which link-local addresses are reached
};
/// `only_this_host`: the loopback alone. Others only of the interfaces that are allowed.
own_addresses find_addresses(bool only_this_host, const base::interface_list& allowed = {});

/// One thing to dial.
struct way {
  address to;
  std::uint32_t scope = 0;  ///< interface, for link-local addresses
  bool later = false;       ///< only if the others have not worked at once
};
inline constexpr std::size_t most_ways = 16;
inline constexpr std::size_t no_way = most_ways;  ///< for an index of one

/// What leads to a rank that published `theirs`, best first; empty: nothing can. `same_host`: over the loopback, and the
/// other addresses as a second thought. Otherwise no loopback, nor what both sides have (each would reach itself).
std::vector<way> choose_ways(const own_addresses& mine, std::span<const address> theirs, bool same_host);

/// Which of the ways leads to the address at the other end of a socket; no_way: none does.
std::size_t way_of_socket(std::span<const way> ways, int socket) noexcept;

/// For bind and connect; its length in `bytes`.
sockaddr_storage socket_address(const address& a, std::uint16_t port, std::uint32_t scope,
                                socklen_t& bytes) noexcept;
/// The address and port a socket has at this end, or at the other; as text. Empty: it has none.
std::string local_text(int socket);
std::string remote_text(int socket);
/// "10.0.0.1", "fe80::1".
std::string text_of(const address& a);

}  // namespace verbena::transport::tcp
