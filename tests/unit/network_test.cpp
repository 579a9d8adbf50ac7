#include "base/network.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <catch2/catch.hpp>

#include <cerrno>
#include <string>
#include <vector>

using namespace verbena::base;

namespace {

sockaddr_storage address_of(const std::string& text) {
  sockaddr_storage at{};
  at.ss_family = text.find(':') == std::string::npos ? AF_INET : AF_INET6;
  void* const bytes = at.ss_family == AF_INET
                          ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(at).sin_addr)
                          : static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(at).sin6_addr);
  REQUIRE(::inet_pton(at.ss_family, text.c_str(), bytes) == 1);
  return at;
}

bool allowed(const std::string& list, const std::string& name, const std::string& address) {
  interface_list parsed;
  REQUIRE(interface_list::parse(list, parsed));
  const sockaddr_storage at = address_of(address);
  return parsed.allows(name, reinterpret_cast<const sockaddr&>(at));
}

std::uint16_t port_of(int socket) {
  sockaddr_in at{};
  socklen_t bytes = sizeof at;
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &bytes) == 0);
  return ntohs(at.sin_port);
}

}  // namespace

TEST_CASE("interfaces are allowed by name, and by the network of their address", "[network]") {
  CHECK(allowed("", "eth0", "10.1.2.3"));
  CHECK(allowed("ib0,eth0", "eth0", "10.1.2.3"));
  CHECK_FALSE(allowed("eth", "eth0", "10.1.2.3"));
  CHECK(allowed("10.1.0.0/16", "eth0", "10.1.255.3"));
  CHECK_FALSE(allowed("10.1.0.0/16", "eth0", "10.2.0.3"));
  CHECK(allowed("10.1.2.128/25", "eth0", "10.1.2.129"));
  CHECK_FALSE(allowed("10.1.2.128/25", "eth0", "10.1.2.127"));
  CHECK(allowed("0.0.0.0/0", "eth0", "10.1.2.3"));
  CHECK_FALSE(allowed("0.0.0.0/0", "eth0", "fd00::1"));
  CHECK(allowed("eth9,fd00::/8", "eth0", "fd12::1"));
  CHECK_FALSE(allowed("fd00:1::/33", "eth0", "fd00:1:8000::1"));
  CHECK(allowed("fd00:1:8000::/33", "eth0", "fd00:1:ffff::1"));
}

TEST_CASE("what is no list of interfaces is refused, and changes nothing", "[network]") {
  interface_list list;
  REQUIRE(interface_list::parse("eth0", list));
  for (const char* wrong : {",", "eth0,", ",eth0", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/", "/8", "10.0.0.0/8x"}) {
    INFO(wrong);
    CHECK_FALSE(interface_list::parse(wrong, list));
  }
  const sockaddr_storage at = address_of("10.0.0.1");
  CHECK(list.allows("eth0", reinterpret_cast<const sockaddr&>(at)));
}

TEST_CASE("a range of ports is one port or two in order", "[network]") {
  port_range range;
  REQUIRE(port_range::parse("5000:5100", range));
  CHECK((range.low == 5000 && range.high == 5100));
  REQUIRE(port_range::parse("65535", range));
  CHECK((range.low == 65535 && range.high == 65535));
  for (const char* wrong : {"", "0", "0:10", "10:9", "5000-5100", "65536", "1:65536", ":", "5:", ":5", " 5", "5:6:7"}) {
    INFO(wrong);
    CHECK_FALSE(port_range::parse(wrong, range));
  }
  CHECK(range.low == 65535);
}

TEST_CASE("sockets listen inside the range until it is full", "[network]") {
  const sockaddr_storage here = address_of("127.0.0.1");
  unique_fd any = listen_within(here, sizeof(sockaddr_in), {}, 1);
  REQUIRE(any);
  // Four ports in a row that are free, as far as the next moment goes.
  const std::uint16_t low = port_of(any.get()) > 60000 ? 20000 : port_of(any.get());
  const port_range range{static_cast<std::uint16_t>(low + 1), static_cast<std::uint16_t>(low + 4)};
  std::vector<unique_fd> taken;
  while (taken.size() < 5) {
    unique_fd one = listen_within(here, sizeof(sockaddr_in), range, 1);
    if (!one) break;
    CHECK((port_of(one.get()) >= range.low && port_of(one.get()) <= range.high));
    taken.push_back(std::move(one));
  }
  CHECK(errno == EADDRINUSE);
  REQUIRE_FALSE(taken.empty());
  CHECK(taken.size() <= 4);
  taken.pop_back();
  CHECK(listen_within(here, sizeof(sockaddr_in), range, 1));
}
