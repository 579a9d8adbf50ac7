// Loopback: a process's way to itself, so that nobody above needs a special case. Packets wait in a bounded
// queue until the next poll; one-sided operations are plain copies, done at once. A refused key ends the
// operation with access_denied in the next poll, as on a real network. It must not know ranks or the engine.
#pragma once

#include "transport/fabric.hpp"
#include "transport/key_table.hpp"
#include "transport/self/event_queue.hpp"

#include <atomic>
#include <cstring>
#include <string>

namespace verbena::transport::self {

inline constexpr std::size_t packet_bytes = 8192;
inline constexpr std::size_t queue_bytes = 64 * 1024;
inline constexpr std::size_t events_per_poll = 64;

class self_fabric {
 public:
  using region = table_region;

  explicit self_fabric(peer self) noexcept : self_(self), queue_(queue_bytes) {}
  self_fabric(const self_fabric&) = delete;
  self_fabric& operator=(const self_fabric&) = delete;

  std::span<const std::byte> address() const noexcept { return {}; }
  bool attach(peer to, std::span<const std::byte>) noexcept { return to == self_; }
  std::string explain(peer to) const {
    return to == self_ ? "self: the peer is this process" : "self: the peer is another process";
  }
  peer_limits limits(peer) const noexcept {
    return {.packet_bytes = packet_bytes,
            .inline_bytes = 40,
            .eager_bytes = packet_bytes,
            .bulk = bulk_method::put,
            .native_put = true,
            .native_atomics = true,
            .latency_us = 0.05F,
            .bandwidth_gbs = 20};
  }

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write) {
    if (to != self_) return post_result::down;
    base::check(size <= packet_bytes, "self: a packet larger than packet_bytes");
    std::byte* room = queue_.push(event_queue::kind::packet, head, size);
    if (room == nullptr) return post_result::again;
    write(room);
    return post_result::done;
  }

  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return access(to, key, offset, local.size, op,
                  [&](std::byte* at) { std::memmove(at, local.data, local.size); });
  }
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return access(to, key, offset, local.size, op,
                  [&](std::byte* at) { std::memmove(local.data, at, local.size); });
  }
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op) {
    if (to != self_) return post_result::down;
    std::byte* at = keys_.resolve(key, offset, local.size);
    if (at == nullptr) return refuse(op, errc::access_denied);
    if (queue_.push(event_queue::kind::flag, {word, 0}, 0) == nullptr) return post_result::again;
    if (local.size != 0) std::memmove(at, local.data, local.size);
    return post_result::done;
  }
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                        std::uint64_t word, operation& op) {
    return update(to, local, key, offset, op, [&](std::uint64_t old) { return old + word; });
  }
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                           std::uint64_t expected, std::uint64_t desired, operation& op) {
    return update(to, local, key, offset, op,
                  [&](std::uint64_t old) { return old == expected ? desired : old; });
  }

  region register_memory(buffer local) {
    const remote_key key = keys_.add(local);
    return key.handle == 0 ? region{} : region{keys_, key};
  }

  template <class Sink>
  std::size_t poll(base::nanoseconds, Sink& sink) {
    std::size_t events = 0;
    while (events < events_per_poll && !failed_.empty()) {
      operation& op = failed_.pop_front();
      op.complete(op.result.error);
      ++events;
    }
    // What a completion or event posts (deferred, but counted on by nobody) waits for the next poll.
    for (const std::uint64_t until = queue_.added(); events < events_per_poll && queue_.removed() != until;
         ++events) {
      const event_queue::record& at = queue_.front();
      if (at.what == event_queue::kind::packet)
        sink.on_packet(self_, at.head, at.payload());
      else
        sink.on_flag(self_, at.head.first);
      queue_.pop();
    }
    return events;
  }
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds now, Sink& sink) {
    return from == self_ ? poll(now, sink) : 0;
  }

  bool arm() noexcept { return queue_.empty() && failed_.empty(); }
  void disarm() noexcept {}

 private:
  template <class Move>
  post_result access(peer to, const remote_key& key, std::uint64_t offset, std::size_t size, operation& op,
                     Move&& move) {
    if (to != self_) return post_result::down;
    std::byte* at = keys_.resolve(key, offset, size);
    if (at == nullptr) return refuse(op, errc::access_denied);
    if (size != 0) move(at);
    return post_result::done;
  }

  /// Threads of this process may use the word with std::atomic_ref meanwhile, so the update is one too.
  template <class Change>
  post_result update(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op,
                     Change&& change) {
    if (to != self_) return post_result::down;
    std::byte* at = keys_.resolve(key, offset, sizeof(std::uint64_t));
    if (at == nullptr) return refuse(op, errc::access_denied);
    if (reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0 ||
        local.size < sizeof(std::uint64_t))
      return refuse(op, errc::invalid_argument);
    std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
    std::uint64_t old = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(old, change(old), std::memory_order_acq_rel)) {
    }
    std::memcpy(local.data, &old, sizeof old);
    return post_result::done;
  }

  post_result refuse(operation& op, errc why) {
    op.start();
    op.result.error = why;
    failed_.push_back(op);
    return post_result::pending;
  }

  peer self_;
  event_queue queue_;
  key_table keys_;
  base::intrusive_list<operation> failed_;  // operations to be completed with their error by the next poll
};

static_assert(fabric<self_fabric>);

}  // namespace verbena::transport::self
