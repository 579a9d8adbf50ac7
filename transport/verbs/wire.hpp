// What travels over queue pairs, version 1, little endian, and what a rank publishes so that others can reach it. It must
// not know how any of it is sent. All of it is untrusted when it arrives.
//
//   packet        session 8 | envelope 16 | payload       on the packets' queue pair; sequence from 1
//   control word  session 8 | control                     there too; sequence 0
//   flag          word 8                                  on an access queue pair, behind its RDMA Write
//   letter        64, between mailboxes (mailbox.hpp): how two ranks make a connection that broke anew
#pragma once

#include "transport/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace verbena::transport::verbs {

struct packet_head {
  session_header session;
  envelope head;
};
static_assert(sizeof(packet_head) == 24);

enum class control_kind : std::uint32_t {
  credit = 1,  ///< so much of yours was received and its room given back
  open =
      2,  ///< make, or make anew, the queue pair that takes my accesses: mine is `number`, and starts at `start`
  opened = 3,  ///< it is there: `number`; 0: it cannot be made
  bye = 4,     ///< I leave in good order, and have sent everything
};

struct control {
  control_kind what = control_kind::credit;
  std::uint32_t number = 0;  ///< of a queue pair
  std::uint32_t start = 0;   ///< packet sequence number (24 bits)
  std::uint32_t round = 0;   ///< of opening: an answer to an older question is none
  std::uint32_t flags = 0;   ///< received of yours, cumulative
  std::uint32_t reserved = 0;
};
static_assert(sizeof(control) == 24 && std::is_trivially_copyable_v<control>);

/// Head of what a rank publishes; then a queue pair number per rank of the job (std::uint32_t; 0 for itself). With
/// `ranks` 0: this rank has no device, and a text says why.
struct contact_head {
  static constexpr std::uint32_t right_magic = 0x32636256U;  // "Vbc2"
  std::uint32_t magic = right_magic;
  std::uint8_t link_layer = 0;
  std::uint8_t mtu = 0;  ///< ibv_mtu
  std::uint16_t lid = 0;
  std::uint8_t gid[16] = {};
  std::uint32_t start = 0;  ///< first packet sequence number of all its queue pairs
  std::uint32_t lease = 0;  ///< packets a peer may have on the way to it
  std::uint32_t flags = 0;  ///< and flags
  std::uint32_t packet_bytes = 0;
  std::uint16_t reads = 0;  ///< reads and atomics it serves at a time
  std::uint16_t reserved = 0;
  std::uint32_t ranks = 0;
  std::uint32_t mailbox = 0;      ///< queue pair number of its mailbox; 0: it has none
  std::uint32_t mailbox_key = 0;  ///< and the key of that
  std::uint64_t identity = 0;  ///< a number at random: of this process, and of no other that was or will be
};
static_assert(sizeof(contact_head) == 64 && std::is_trivially_copyable_v<contact_head>);

struct contact {
  contact_head head;
  std::uint32_t number = 0;  ///< of the queue pair that is meant for the reader
  std::string why;           ///< there is no device there
};

enum class letter_kind : std::uint32_t {
  broken = 1,  ///< the connection is broken here, nothing of it comes in any more, and here is where I stand
  listens,     ///< and I know where you stand, and hear what you send over the new one
  up,          ///< I send again (an answer to `listens`)
  given_up,    ///< I have given you up (an answer to the first two)
};

/// Where a rank stands with a connection that is made anew.
struct letter {
  static constexpr std::uint32_t right_magic = 0x316c6256U;  // "Vbl1"
  std::uint32_t magic = right_magic;
  letter_kind what = letter_kind::broken;
  std::uint64_t to = 0;             ///< identity
  std::uint64_t by = 0;             ///< identity
  std::uint32_t rank = 0;           ///< of who writes
  std::uint32_t incarnation = 0;    ///< of the new connection: grows with each
  std::uint32_t number = 0;         ///< of the queue pair for packets
  std::uint32_t start = 0;          ///< its first packet sequence number (24 bits)
  std::uint32_t arrived = 0;        ///< packets of yours that have arrived, ever
  std::uint32_t sent = 0;           ///< packets that I have numbered, ever
  std::uint32_t flags_arrived = 0;  ///< flags of yours that have arrived, ever
  std::uint32_t reserved[3] = {};
};
static_assert(sizeof(letter) == 64 && std::is_trivially_copyable_v<letter>);

/// Nothing: these bytes are no letter to the process `identity` by a rank of a job of `ranks`.
std::optional<letter> decode_letter(std::span<const std::byte> bytes, std::uint64_t identity,
                                    std::uint32_t ranks);

std::vector<std::byte> encode(const contact_head& head, std::span<const std::uint32_t> numbers);
std::vector<std::byte> encode_absence(const std::string& why);
/// Nothing: these bytes are no contact for rank `reader` of a job of `ranks`.
std::optional<contact> decode(std::span<const std::byte> bytes, std::uint32_t reader, std::uint32_t ranks);

/// The first bytes of what arrived as a T; nothing if there are fewer.
template <class T>
std::optional<T> take(std::span<const std::byte>& bytes) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof(T));
  return value;
}

}  // namespace verbena::transport::verbs
