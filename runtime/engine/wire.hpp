// What the engine writes into a packet, format version 1: the 16-byte header that a fabric carries as its
// envelope, and the fixed bodies of control packets. Little endian, fixed size. Decoding untrusted bytes goes
// through the functions here, which can fail and touch nothing outside what they are given. It must not know
// fabrics.
#pragma once

#include "transport/fabric.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace verbena::runtime::wire {

static_assert(std::endian::native == std::endian::little,
              "big-endian hosts need byte swaps in this file only");

enum class kind : std::uint8_t {
  invalid = 0,
  eager = 1,  ///< the whole message: header | payload
  eager_first =
      2,  ///< header | eager_body | first piece; the rest follows as `eager_more`, in order, on the same lane
  eager_more = 3,  ///< header | next piece of the message this peer has open on this lane
  rts = 4,         ///< request to send: header | rts_body
  cts = 5,         ///< clear to send, answers rts: header | cts_body
  fin = 6,         ///< the data of a rendezvous is in place, or it failed: header | fin_body
  data = 7,        ///< a piece of a rendezvous that moves as a stream: header | data_body | bytes
  sync_ack = 8,    ///< a synchronous eager message was matched: header | handle
  grant = 9,       ///< budget for unexpected messages given back: header | grant_body
  envelope_only =
      10,          ///< an eager message whose data stayed with the sender (budget spent): header | eager_body
  one_sided = 11,  ///< put/get/atomic by packets where the fabric has none: header | one_sided_body | bytes
  one_sided_reply = 12,
  flag = 13,       ///< put_with_flag by packets: header | word
  leave = 14,      ///< this peer answers no announcement any more that it has not answered: header
  ask_wait = 15,   ///< for what does the receiver of this wait? header
  tell_wait = 16,  ///< the answer: header | wait_body
  first_handler =
      32,  ///< from here: registered handlers above the engine (windows, signatures, revoke, hang report)
};

enum flag_bits : std::uint8_t {
  synchronous = 1,  ///< the sender wants sync_ack / completes only when matched
  collective = 2,   ///< the second context of a communicator: collectives never match point-to-point
};

/// Context ids carry a generation so that a late packet of a freed communicator is recognised.
struct context_id {
  std::uint32_t value = 0;  ///< slot in the low 20 bits, generation above
  friend bool operator==(context_id, context_id) = default;
};

struct header {
  kind what = kind::invalid;
  std::uint8_t flags = 0;
  std::uint8_t lane = 0;
  std::uint8_t reserved = 0;
  context_id context;
  std::int32_t source = 0;  ///< rank of the sender in the communicator
  std::int32_t label = 0;   ///< tag
};
static_assert(sizeof(header) == sizeof(transport::envelope) && std::is_trivially_copyable_v<header>);

constexpr transport::envelope encode(header h) noexcept {
  return std::bit_cast<transport::envelope>(h);
}
constexpr header decode(transport::envelope e) noexcept {
  return std::bit_cast<header>(e);
}

/// The same as encode() of a header without flags on lane 0, in registers from the start: the message path.
constexpr transport::envelope pack(kind what, std::uint32_t context, std::int32_t source, std::int32_t label) noexcept {
  return {static_cast<std::uint64_t>(what) | std::uint64_t{context} << 32,
          std::uint64_t{static_cast<std::uint32_t>(source)} | std::uint64_t{static_cast<std::uint32_t>(label)} << 32};
}
static_assert(pack(kind::rts, 0x80000001, 5, -1) ==
              encode({.what = kind::rts, .flags = 0, .lane = 0, .reserved = 0, .context = {0x80000001}, .source = 5,
                      .label = -1}));

/// Slot and generation of a pending operation at the side that made it.
struct handle {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  friend bool operator==(handle, handle) = default;
};

struct eager_body {
  std::uint64_t total = 0;
  handle sender;  ///< valid with flag synchronous, and in envelope_only
};

struct grant_body {
  std::uint64_t released = 0;  ///< charge of all messages of this direction that are out of the way, since the start
};

struct rts_body {
  std::uint64_t total = 0;
  handle sender;
  transport::remote_key key;  ///< of the source (get, together: the ticket); zero for put and stream
  std::uint8_t method = 0;    ///< transport::bulk_method the sender proposes
  std::uint8_t reserved[7] = {};
};

struct cts_body {
  handle sender;              ///< whose data may go
  handle receiver;            ///< whose FIN or data is expected
  transport::remote_key key;  ///< of the target (put); zero for stream
  std::uint64_t bytes = 0;    ///< how much may go, from `offset`
  std::uint64_t offset = 0;
};

struct fin_body {
  handle to;  ///< an operation of the packet's receiver
  std::uint64_t bytes = 0;
  std::uint8_t error = 0;        ///< verbena::errc
  std::uint8_t from_sender = 0;  ///< 1: `to` is a receive, 0: `to` is a send
  std::uint8_t reserved[6] = {};
};

struct data_body {
  handle receiver;
  std::uint64_t offset = 0;
};

/// What a rank waits for, as on its doorbell (base/job_page.hpp).
struct wait_body {
  std::uint32_t in = 0;     ///< base::waiting_in; another value: something
  std::uint32_t with = 0;   ///< job rank, or ~0
  std::int32_t label = -1;  ///< tag; -1: any
  std::uint32_t reserved = 0;
};

enum class one_sided_kind : std::uint8_t {
  put = 1,
  get = 2,
  fetch_add = 3,
  compare_swap = 4,
  put_with_flag = 5,
  confirm = 6  ///< nothing: the reply says that all that was sent before has been carried out
};

/// A put, and the reply to a get, go in pieces, in order; only the last piece of a put is replied to.
struct one_sided_body {
  one_sided_kind what = one_sided_kind::put;
  std::uint8_t error = 0;  ///< of a reply: verbena::errc
  std::uint8_t last = 0;   ///< 1: no piece follows
  std::uint8_t reserved[5] = {};
  handle origin;              ///< the asker's operation
  transport::remote_key key;  ///< of the target engine's own table; unused in replies
  std::uint64_t offset = 0;   ///< in the region; in a reply: in the range that was asked for
  std::uint64_t bytes = 0;    ///< of this piece; of a get: all that is wanted
  std::uint64_t operands[2] = {};  ///< in a reply: the old value
};

template <class Body>
inline constexpr bool fits_control = sizeof(header) + sizeof(Body) <= transport::control_packet_bytes;
static_assert(fits_control<eager_body> && fits_control<rts_body> && fits_control<cts_body> &&
              fits_control<fin_body> && fits_control<data_body> && fits_control<one_sided_body>);
static_assert(sizeof(eager_body) == 16 && sizeof(rts_body) == 56 && sizeof(cts_body) == 64 &&
              sizeof(fin_body) == 24 && sizeof(grant_body) == 8 && sizeof(data_body) == 16 &&
              sizeof(wait_body) == 16 && sizeof(one_sided_body) == 80);

/// Reads a body from the front of a payload and drops it from there; nothing if the payload is too short.
template <class Body>
std::optional<Body> take(std::span<const std::byte>& payload) noexcept {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (payload.size() < sizeof(Body)) return std::nullopt;
  Body body;
  std::memcpy(&body, payload.data(), sizeof body);
  payload = payload.subspan(sizeof body);
  return body;
}

/// Writes a body at `to`; returns the first byte behind it.
template <class Body>
std::byte* put(std::byte* to, const Body& body) noexcept {
  static_assert(std::is_trivially_copyable_v<Body>);
  std::memcpy(to, &body, sizeof body);
  return to + sizeof body;
}

}  // namespace verbena::runtime::wire
