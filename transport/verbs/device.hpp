// Which device, port and GID a rank uses: an active port only, the fastest first; on Ethernet a GID of RoCE v2,
// IPv4-mapped before IPv6, empty entries and those of version 1 skipped; on InfiniBand the LID. It must not know peers.
#pragma once

#include "transport/verbs/objects.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace verbena::transport::verbs {

/// One port, opened. `context` null: none can be used, and `why` says so in a sentence.
struct device_choice {
  device_handle context;
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  std::uint8_t port_number = 0;
  std::uint8_t gid_index = 0;
  ibv_gid gid{};
  std::string name;
  std::string why;  ///< why this one; or why none

  bool ethernet() const noexcept { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }
  /// Bytes per nanosecond.
  float bandwidth() const noexcept;
  /// "rxe0 port 1, GID 1 (RoCE v2, ::ffff:10.0.0.1)"
  std::string text() const;
};

/// After the port was down the GID may have another place in the table. False: it is not there (any more, or yet).
bool find_gid_again(device_choice& device) noexcept;

/// `wanted`: "name" or "name:port"; empty: any.
device_choice choose_device(std::string_view wanted);

/// "::ffff:10.0.0.1"
std::string gid_text(const ibv_gid& gid);

const char* port_state_text(ibv_port_state state) noexcept;

}  // namespace verbena::transport::verbs
