// The contract between the engine and whatever moves bytes. Each leaf (`self`, `shm`, `tcp`, `verbs`,
// `sim`) is static_asserted against `fabric`; `routed_fabric` composes them and is what the engine is written
// against.
//
// Contract (tests/contract holds every fabric to it):
//  1. Packets are reliable and arrive in order per peer and lane. A packet posted after a put arrives after
//     the put is visible, on the same lane (striped puts: when all rails have completed).
//  2. Nothing blocks. `again` means: refused, nothing taken, no side effect; the engine retries from its
//     per-peer FIFO. A fabric never queues what it refused. A peer's `again` ends by itself as long as the
//     peer polls.
//  3. Nothing above runs inside `poll` except the sink's state change. The sink never posts from inside:
//     answers go to the engine's deferred list and leave after `poll`, in the same tick.
//  4. A received packet's bytes are valid only during `on_packet`.
//  5. `put_with_flag` arrives as `on_flag`, after the put is visible; never as user memory that somebody
//     polls.
//  6. `on_peer_down` comes once, when that peer can no longer write into local memory and all it had sent was
//     reported. Why: peer_failed, peer_left (in good order), malformed, link_down (given up). Afterwards everything posted to it
//     returns `down`; its pending operations complete before the call: what was moved whole well, the rest with why.
//  7. No pointer travels: handles are slot + generation. What a peer sends can be wrong; it is decoded, never
//     trusted.
//  8. Time enters as an argument. Only runtime/waiter may block.
// A fabric is used by one thread at a time (its context's lane).
#pragma once

#include "base/clock.hpp"
#include "transport/operation.hpp"
#include "transport/packet.hpp"

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace verbena::transport {

/// Index of a process in the job (its job rank; strong, so that it is not mistaken for a rank of a
/// communicator).
struct peer {
  std::uint32_t index = 0;
  constexpr peer() = default;
  constexpr explicit peer(std::uint32_t i) : index(i) {}
  friend constexpr auto operator<=>(peer, peer) = default;
};

enum class memory_kind : std::uint8_t { host = 0, device = 1 };

/// User memory that an operation reads or writes. The user owns it and leaves it alone until the operation is
/// done.
struct buffer {
  std::byte* data = nullptr;
  std::size_t size = 0;
  memory_kind kind = memory_kind::host;
};

/// Names a registered range of another process. Fixed size, trivially copyable, sent as a value; guards
/// nothing by itself: the fabric checks it on use.
struct remote_key {
  std::uint64_t address = 0;   ///< of the range, in its owner's address space
  std::uint64_t size = 0;      ///< bytes
  std::uint32_t keys[2] = {};  ///< rkey per rail (verbs); pid and arena slot (shm)
  std::uint32_t handle = 0;    ///< slot and generation of the registration
  std::uint8_t fabric = 0;     ///< route that made it
  std::uint8_t kind = 0;       ///< memory_kind
  std::uint16_t reserved = 0;
};
static_assert(sizeof(remote_key) == 32);

enum class post_result : std::uint8_t {
  done,  ///< taken, and the caller's buffer is reusable (never "delivered"); the operation, if any, was not
         ///< used
  pending,  ///< taken; the fabric has started the operation (the caller hands it in not pending) and completes
            ///< it, failed or not, during some later poll
  again,    ///< refused for now, nothing taken
  down,     ///< the peer is gone for good
};

/// What a look at the next packet of one peer found, where a fabric offers that look (routed_fabric::take_next).
enum class next_packet : std::uint8_t {
  none,   ///< nothing there
  taken,  ///< it was accepted, and is gone
  other,  ///< something is there that was not accepted, or cannot be looked at this way: poll
};

/// How a message too large for eager packets should move to this peer.
enum class bulk_method : std::uint8_t {
  put,       ///< the receiver registers, the sender puts (RDMA Write)
  together,  ///< both ends copy chunks claimed from the two ends of the message (shared memory with
             ///< cross-memory attach)
  stream,    ///< packets, copied twice (no registration to be had)
};

/// What this way to a peer can do, re-read for each operation: it may change when a route changes.
struct peer_limits {
  std::size_t packet_bytes = control_packet_bytes;  ///< largest payload of one packet, at least 256 - 16
  std::size_t inline_bytes = 0;  ///< payload up to this travels with the envelope at no extra cost
  std::size_t eager_bytes = 0;   ///< default for the largest message sent without asking
  bulk_method bulk = bulk_method::stream;
  bool native_put = false;  ///< put/get/put_with_flag without the peer's CPU
  bool native_atomics = false;
  float latency_us = 1;     ///< L of T = L + S/B
  float bandwidth_gbs = 1;  ///< B, in bytes per nanosecond
};

/// What poll reports. The engine implements it; tests record with it.
template <class Sink>
concept packet_sink = requires(Sink& sink, peer from, envelope head, std::span<const std::byte> payload,
                               std::uint64_t flag, errc why) {
  { sink.on_packet(from, head, payload) }
  noexcept;
  { sink.on_flag(from, flag) }
  noexcept;
  { sink.on_peer_down(from, why) }
  noexcept;
  { sink.on_limits_changed(from) }
  noexcept;
};

/// Move-only proof that local memory is registered; deregisters on destruction. `key` may be sent to peers.
template <class Region>
concept memory_region = std::movable<Region> && !std::copyable<Region> && requires(const Region& region) {
  { region.key() } -> std::same_as<remote_key>;
  {static_cast<bool>(region)};
};

/// A writer fills the fabric's own memory (ring line, registered slot, socket buffer): the only copy of an
/// eager send.
struct noop_writer {
  void operator()(std::byte*) const noexcept {}
};

struct null_sink {
  void on_packet(peer, envelope, std::span<const std::byte>) noexcept {}
  void on_flag(peer, std::uint64_t) noexcept {}
  void on_peer_down(peer, errc) noexcept {}
  void on_limits_changed(peer) noexcept {}
};
static_assert(packet_sink<null_sink>);

template <class F>
concept fabric = requires(F& f, const F& cf, peer to, envelope head, std::size_t size, noop_writer write,
                          null_sink& sink, buffer local, remote_key key, std::uint64_t offset,
                          std::uint64_t word, operation& op, base::nanoseconds now,
                          std::span<const std::byte> address) {
  typename F::region;
  requires memory_region<typename F::region>;

  /// What peers need to reach this process; opaque, published by the bootstrap. May be empty.
  { cf.address() } -> std::convertible_to<std::span<const std::byte>>;
  /// Declares a peer; connects on first use. False: this fabric cannot reach it (the reason is in `explain`).
  { f.attach(to, address) } -> std::same_as<bool>;
  /// One sentence: why this fabric is, or is not, used for the peer.
  { cf.explain(to) } -> std::convertible_to<std::string>;
  { cf.limits(to) } -> std::same_as<peer_limits>;

  /// Sends one packet of `size` <= limits(to).packet_bytes payload bytes; `write(p)` is called at most once,
  /// before the return, with room for exactly `size` bytes. done | again | down.
  { f.send(to, head, size, write) } -> std::same_as<post_result>;

  /// One-sided, into / out of `key` at `offset`. Memory must be registered at the peer; `local` too where the
  /// fabric registers. Where limits().native_put is false they may return `down`; the engine then uses
  /// packets.
  { f.put(to, local, key, offset, op) } -> std::same_as<post_result>;
  { f.get(to, local, key, offset, op) } -> std::same_as<post_result>;
  { f.put_with_flag(to, local, key, offset, word, op) } -> std::same_as<post_result>;
  /// 8-byte atomics on aligned remote memory; the old value is written to local.data. Only with
  /// native_atomics.
  { f.fetch_add(to, local, key, offset, word, op) } -> std::same_as<post_result>;
  { f.compare_swap(to, local, key, offset, word, word, op) } -> std::same_as<post_result>;

  /// An empty region if the fabric refuses (limits, memlock); never throws.
  { f.register_memory(local) } -> std::same_as<typename F::region>;

  /// Moves what can be moved and reports to the sink. Returns the number of events reported or steps made; 0:
  /// nothing to do. Bounded: a flood from one peer cannot keep it from returning.
  { f.poll(now, sink) } -> std::same_as<std::size_t>;
  /// The same for one peer only, as cheap as can be: what a blocking receive spins on.
  { f.poll_from(to, now, sink) } -> std::same_as<std::size_t>;

  /// About to sleep: from here on an arrival must ring the rank's doorbell. False: something is there, do not
  /// sleep.
  { f.arm() } -> std::same_as<bool>;
  /// Awake again (undoes arm).
  {f.disarm()};
};

/// What a fabric with bulk_method::together adds. A message is offered by its sender, the ticket travels in
/// the engine's RTS, the receiver accepts it into its buffer; both then copy during `poll`, the receiver from
/// the front and the sender from the back while it happens to be in progress, until all is moved. Both
/// operations complete without a further packet.
template <class F>
concept sharing_fabric = fabric<F> &&
    requires(F& f, peer to, buffer local, remote_key& ticket, operation& op) {
  /// pending (ticket written) | again (no descriptor free) | down.
  { f.offer(to, local, ticket, op) } -> std::same_as<post_result>;
  /// Takes an offered message of exactly local.size bytes. pending | down (a forged or withdrawn ticket).
  { f.accept(to, local, ticket, op) } -> std::same_as<post_result>;
  /// The sender takes an offer back; the operation is not completed by it, and nobody touches the buffer any more.
  /// False: it was accepted meanwhile, or is not there; then the operation goes its way.
  { f.withdraw(to, ticket) } -> std::same_as<bool>;
};

}  // namespace verbena::transport
