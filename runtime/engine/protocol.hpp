// The choice of protocol for one message: a pure function of its size and of what the way to the peer can do. With
// T = L + S/B, asking first costs about 2L more and saves a copy of S bytes; the fabrics' eager_bytes is their measured
// break-even, which a setting may override.
#pragma once

#include "transport/fabric.hpp"

#include <cstddef>
#include <cstdint>

namespace verbena::runtime {

/// No eager message is larger, whatever the setting says: a receiver sets memory aside for an eager message on its
/// sender's word, and refuses a word that no honest sender gives.
inline constexpr std::size_t largest_eager = 16U << 20;

/// Room of one block of kept copies (engine::keep).
inline constexpr std::size_t packed_bytes = 16U << 10;

enum class protocol : std::uint8_t { eager_single, eager_pieces, rendezvous };

struct protocol_limits {
  std::size_t packet_bytes = 0;  ///< payload of one packet
  std::size_t eager_limit = 0;   ///< largest message sent without asking
};

constexpr protocol choose(const protocol_limits& limits, std::size_t bytes) noexcept {
  if (bytes > limits.eager_limit) return protocol::rendezvous;
  return bytes <= limits.packet_bytes ? protocol::eager_single : protocol::eager_pieces;
}

/// The limits in force: the fabric's, unless `eager_override` (bytes, 0: none) says otherwise.
constexpr protocol_limits limits_in_force(const transport::peer_limits& fabric, std::size_t eager_override) noexcept {
  const std::size_t wanted = eager_override != 0 ? eager_override : fabric.eager_bytes;
  return {fabric.packet_bytes, wanted < largest_eager ? wanted : largest_eager};
}

}  // namespace verbena::runtime
