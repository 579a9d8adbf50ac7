// What a fabric carries: an envelope of 16 opaque bytes and a payload. The engine's reading of the envelope
// is runtime/engine/wire.hpp; a fabric must not look inside. Off-node fabrics put a session header in front
// of it.
//
//   on the node     envelope 16 | payload
//   off the node    session 8 | envelope 16 | payload          (version 1)
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace verbena::transport {

/// 16 bytes that travel with every packet, little endian; two registers wide so that passing it costs
/// nothing.
struct envelope {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const envelope&, const envelope&) = default;
};
static_assert(sizeof(envelope) == 16 && std::is_trivially_copyable_v<envelope>);

/// Per peer, on fabrics that leave the node: what makes packets reliable and in order across a reconnect.
struct session_header {
  std::uint32_t sequence = 0;      ///< of this packet; from 1, and from the last on from 1 again; 0: not a packet
  std::uint32_t acknowledged = 0;  ///< cumulative: everything up to and including this one arrived
};
static_assert(sizeof(session_header) == 8 && std::is_trivially_copyable_v<session_header>);

/// Every packet that is not user data fits this, envelope included; a fabric's smallest legal packet limit.
inline constexpr std::size_t control_packet_bytes = 256;

}  // namespace verbena::transport
