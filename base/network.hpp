// Which of a host's network addresses and ports a job may use: what the user restricts them to, and listening inside that. It
// must not know what is said on a connection.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::base {

/// "eth0,10.1.0.0/16,fd00::/8": interfaces by name, and networks, which need not be called alike on all hosts. Empty: all.
class interface_list {
 public:
  /// False if `text` is no such list; then nothing has changed.
  static bool parse(std::string_view text, interface_list& into);
  bool empty() const noexcept { return names_.empty() && networks_.empty(); }
  /// May an address that this host has on the interface `name` be used?
  bool allows(std::string_view name, const sockaddr& address) const noexcept;

 private:
  struct network {
    int family = 0;
    unsigned bits = 0;
    std::array<std::byte, 16> bytes{};
  };
  static bool parse_network(std::string_view text, network& into);

  std::vector<std::string> names_;
  std::vector<network> networks_;
};

/// Both ends belong to it; 0 and 0: any port.
struct port_range {
  std::uint16_t low = 0;
  std::uint16_t high = 0;
  /// "5000:5100" or one port. False: it is neither, and nothing has changed.
  static bool parse(std::string_view text, port_range& into);
  friend bool operator==(const port_range&, const port_range&) = default;
};

/// A socket that listens at `address` (its own port is ignored) on a free port of the range; it does not block, and is closed on
/// exec. `both_families`: at IPv6's "any" it hears IPv4 as well. Empty, with errno: no port is free, or the address cannot be had.
unique_fd listen_within(sockaddr_storage address, socklen_t bytes, port_range range, int backlog, bool both_families = false);

/// Small packets are not held back, and the other host's kernel is asked for a sign of life ten times in `timeout` (at least once a
/// second) while nobody says anything.
void ask_often(int socket, nanoseconds timeout) noexcept;
/// The same, and the kernel ends the connection to a host that is not reached for `timeout` (at least a second), with ETIMEDOUT or a
/// network's error; also one whose program reads nothing for so long.
void watch_link(int socket, nanoseconds timeout) noexcept;

}  // namespace verbena::base
