// What a rank publishes so that others can reach it by TCP, and what travels over a connection once both ends have proven
// who they are (handshake.hpp): version 1, little endian. It must not know how any of it is sent. All of it is untrusted
// when it arrives.
//
//   packet   bytes 4 | kind 4 | session 8 | envelope 16 | payload      session's sequence from 1
//   answer   bytes 4 | kind 4 | session 8                              sequence 0: what has arrived
//   bye      the same: its sender leaves in good order, and has sent everything
#pragma once

#include "transport/packet.hpp"
#include "transport/tcp/address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace verbena::transport::tcp {

/// Largest payload of one packet: see docs/decisions/0050-tcp.md.
inline constexpr std::size_t payload_bytes = 64U << 10;

enum class frame_kind : std::uint32_t {  // "VbP1" and so on: what is out of step shows at once
  packet = 0x31506256U,
  answer = 0x31416256U,
  bye = 0x31426256U,
};

struct frame_head {
  std::uint32_t bytes = 0;  ///< of the whole frame, this head included
  frame_kind kind = frame_kind::packet;
  session_header session;
};
static_assert(sizeof(frame_head) == 16 && std::is_trivially_copyable_v<frame_head>);

struct packet_head {
  frame_head frame;
  envelope head;
};
static_assert(sizeof(packet_head) == 32);

inline constexpr std::size_t longest_frame = sizeof(packet_head) + payload_bytes;

/// One frame, as it lies in whatever it was read into.
struct frame {
  frame_kind kind = frame_kind::packet;
  session_header session;
  envelope head;
  std::span<const std::byte> payload;
};

enum class reading : std::uint8_t {
  whole,      ///< a frame was taken off the front
  partial,    ///< the beginning of one, so far a possible one
  malformed,  ///< nothing that goes on like this is a frame
};

/// Takes a frame off the front of `bytes`; otherwise leaves both arguments as they were.
reading take_frame(std::span<const std::byte>& bytes, frame& into) noexcept;

/// Marks one life of one process: a rank that is started again is another one.
using instance = std::array<std::byte, 16>;

/// What a rank publishes.
struct contact {
  instance self{};
  host_mark host{};
  std::uint16_t port = 0;  ///< 0: it listens nowhere, and `why` says why
  std::vector<address> addresses;
  std::string why;
};

inline constexpr std::size_t most_addresses = 64;

std::vector<std::byte> encode(const contact& c);
/// Nothing: these bytes are no contact.
std::optional<contact> decode_contact(std::span<const std::byte> bytes);

}  // namespace verbena::transport::tcp
