// The engine of one context: matching and protocols over whatever fabric leads to a peer. It turns sends and receives
// into packets and one-sided transfers, and packets into completions. A state machine: it never blocks, never sleeps,
// never reads a clock; time comes in through progress(now). One thread at a time.
//
// Protocols, by size and by what the way to the peer can do (choose() in protocol.hpp):
//   eager        one packet, or several pieces in a row; nobody is asked
//   together     RTS, then both ends copy (shared memory)
//   put          RTS, CTS with the key of the registered target, RDMA Write, FIN
//   stream       RTS, CTS, DATA packets
// Per peer, what a fabric refuses (`again`) waits in one FIFO, so messages never overtake each other.
//
// It must not know how ranks were started, nor how a thread waits.
#pragma once

#include "base/block_pool.hpp"
#include "base/clock.hpp"
#include "base/copy.hpp"
#include "base/paged_table.hpp"
#include "base/settings.hpp"
#include "runtime/collective_port.hpp"
#include "runtime/counters.hpp"
#include "runtime/engine/matcher.hpp"
#include "runtime/engine/message.hpp"
#include "runtime/engine/protocol.hpp"
#include "runtime/engine/wire.hpp"
#include "transport/routed_fabric.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace verbena::runtime {

using transport::peer;
using transport::post_result;

class engine;

/// What the engine keeps per peer it has to do with.
struct engine_peer : base::list_link {  // in `backlog_` while something waits
  base::intrusive_list<message> waiting;  ///< sends and answers a fabric refused, in order
  std::size_t packet_bytes = 0;           ///< 0: limits not read yet
  std::size_t single_eager = 0;           ///< largest message that goes as one packet
  std::size_t eager_limit = 0;
  transport::bulk_method bulk = transport::bulk_method::stream;
  message* open_receive = nullptr;        ///< eager_first seen, pieces still to come: into this receive
  parcel* open_parcel = nullptr;          ///< or into this parcel
  std::uint32_t index = 0;                ///< job rank
  bool down = false;
  engine* host = nullptr;
};

/// Where a message goes: the peer and the first three words of its header, fixed per communicator and direction.
struct envelope_route {
  peer to;
  std::uint32_t context = 0;  ///< with the collective bit, if any
  std::int32_t self = 0;      ///< our rank in that communicator
};

inline constexpr std::uint32_t collective_bit = 1u << 31;

class engine {
 public:
  engine(transport::routed_fabric& fabric, const base::settings& settings, std::uint32_t self, std::uint32_t job_size);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Starts a send of `bytes` bytes. The operation must be idle; the buffer belongs to the engine until it is done.
  void send(operation& op, const envelope_route& way, const void* data, std::size_t bytes, tag label);
  /// Sends now if one packet does it and the fabric takes it; false: nothing happened, use send().
  bool send_at_once(const envelope_route& way, const void* data, std::size_t bytes, tag label);

  /// Starts a receive; `from` null: any source. `want.source` is a rank of the communicator.
  void receive(operation& op, const peer* from, const match_key& want, void* data, std::size_t bytes);
  /// Takes a receive back if it is not matched yet: completes it with errc::cancelled and returns true.
  bool cancel(operation& op);

  /// A blocking receive from one peer whose message may be the next to arrive there: not posted unless something else
  /// arrives first. Lives on the caller's stack.
  struct express_receive {
    transport::envelope head;       ///< expected; after success: as it came
    std::uint64_t second_mask = 0;  ///< of head.second: without the tag for any_tag
    peer from;
    std::byte* data = nullptr;
    std::size_t size = 0;
    std::size_t total = 0;  ///< of the message, after success
    bool done = false;
    bool posted = false;  ///< an ordinary receive stands in its place; `op` exists and is pending or over
    match_key want;
    union {
      operation op;  // made by `settle_express` only: making one costs as much as the rest of a receive
    };

    express_receive(transport::envelope expected, std::uint64_t mask, peer who, void* room, std::size_t bytes,
                    const match_key& key) noexcept
        : head(expected), second_mask(mask), from(who), data(static_cast<std::byte*>(room)), size(bytes), want(key) {}
    express_receive(const express_receive&) = delete;
    express_receive& operator=(const express_receive&) = delete;
    ~express_receive() { static_assert(std::is_trivially_destructible_v<operation>); }
  };
  /// True if an express receive may be tried: nothing older could take its message.
  bool express_allowed() const noexcept {
    return !matcher_.has_posted() && !matcher_.has_unexpected() && !any_down_;
  }
  /// Looks at the peer's channel, as often as given. True: done. False: `posted` says whether an ordinary receive took
  /// its place; if not, another look or `settle_express` is due.
  bool look_express(express_receive& wanted, int looks);
  /// Posts the ordinary receive in place of an express one that found nothing.
  void settle_express(express_receive& wanted);

  /// One tick: polls, answers, retries, advances tasks. True if something moved.
  bool progress(base::nanoseconds now);

  void add_task(progress_task& task) noexcept { tasks_.push_back(task); }
  bool nothing_pending() const noexcept { return messages_.live() == 0; }
  /// Something was refused by a fabric and waits for room.
  bool retrying() const noexcept { return waiting_ != 0; }
  bool peer_down(peer p) noexcept { return peers_[p.index].down; }
  bool any_peer_down() const noexcept { return any_down_; }
  const counters& counts() const noexcept { return counts_; }

  /// Makes the peer's limits known and returns its record.
  engine_peer& meet(peer p);

  // The sink of the fabrics; not for others.
  void on_packet(peer from, transport::envelope head, std::span<const std::byte> payload) noexcept;
  void on_flag(peer from, std::uint64_t flag) noexcept;
  void on_peer_down(peer from, errc why) noexcept;
  void on_limits_changed(peer from) noexcept;

 private:
  // sending (send.cpp)
  void read_limits(engine_peer& p);
  void enqueue(engine_peer& p, message& m);
  post_result advance(message& m);
  post_result advance_eager(message& m);
  post_result advance_put(message& m);
  post_result advance_stream(message& m);
  post_result send_control(message& m, wire::kind what);
  void flush();
  void finish(message& m, errc error) noexcept;

  void dispatch(peer from, transport::envelope head, std::span<const std::byte> payload) noexcept;
  void count_receive(std::byte* data, std::size_t got) noexcept;

  // receiving (receive.cpp)
  void on_eager(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_eager_first(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_eager_more(engine_peer& from, std::span<const std::byte> payload);
  message* match(engine_peer& from, const wire::header& head);
  parcel& park(engine_peer& from, const wire::header& head, std::size_t total, bool with_data);
  void unpark(parcel& p) noexcept;
  void post(operation& op, engine_peer* from, const match_key& want, std::byte* data, std::size_t bytes);
  void accept_parcel(operation& op, parcel& p, std::byte* data, std::size_t bytes);
  void store_piece(message& m, std::span<const std::byte> piece) noexcept;
  void finish_receive(message& m, errc error) noexcept;
  void complete_receive(operation& op, const wire::header& head, std::byte* data, std::size_t room, std::size_t total,
                        errc error) noexcept;

  // rendezvous (rendezvous.cpp)
  void on_rts(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_cts(engine_peer& from, std::span<const std::byte> payload);
  void on_fin(engine_peer& from, std::span<const std::byte> payload);
  void on_data(engine_peer& from, std::span<const std::byte> payload);
  void begin_rendezvous(message& m, const wire::rts_body& rts, const wire::header& head);
  void start(message& m);
  void answer();

  void malformed() noexcept { ++counts_.malformed; }
  static match_key key_of(const wire::header& head) noexcept;

  transport::routed_fabric& fabric_;
  std::size_t eager_override_;
  std::uint32_t self_;
  bool any_down_ = false;
  bool polling_ = false;  ///< inside fabric_.poll: nothing may be posted, sends only queue up
  bool flip_bytes_ = false;  ///< test builds: corrupt a received byte now and then
  express_receive* express_ = nullptr;
  std::size_t waiting_ = 0;  ///< messages in all FIFOs
  base::nanoseconds now_ = 0;
  counters counts_;
  base::paged_table<engine_peer> peers_;
  matcher matcher_;
  base::intrusive_list<engine_peer> backlog_;
  base::intrusive_list<message> starting_;
  base::intrusive_list<progress_task> tasks_;
  message_pool messages_;
  parcel_pool parcels_;
  base::block_pool blocks_;
};

static_assert(transport::packet_sink<engine>);

inline engine_peer& engine::meet(peer p) {
  engine_peer& known = peers_[p.index];
  if (known.packet_bytes == 0) [[unlikely]] {
    known.index = p.index;
    read_limits(known);
  }
  return known;
}

[[gnu::always_inline]] inline bool engine::send_at_once(const envelope_route& way, const void* data, std::size_t bytes, tag label) {
  engine_peer& to = meet(way.to);
  if (bytes > to.single_eager || waiting_ != 0 || to.down) [[unlikely]]
    return false;
  const auto* from = static_cast<const std::byte*>(data);
  if (fabric_.send(way.to, wire::pack(wire::kind::eager, way.context, way.self, label.value), bytes,
                   [&](std::byte* at) { base::copy_bytes(at, from, bytes); }) != post_result::done) [[unlikely]]
    return false;
  ++counts_.messages_sent;
  ++counts_.eager_sent;
  counts_.bytes_sent += bytes;
  return true;
}

[[gnu::always_inline]] inline bool engine::look_express(express_receive& wanted, int looks) {
  express_ = &wanted;
  polling_ = true;
  do {
    fabric_.poll_from(wanted.from, now_, *this);
  } while (express_ != nullptr && --looks > 0);
  polling_ = false;
  express_ = nullptr;
  return wanted.done;
}

inline void engine::count_receive([[maybe_unused]] std::byte* data, std::size_t got) noexcept {
  ++counts_.messages_received;
  counts_.bytes_received += got;
#ifdef VERBENA_TEST_HOOKS
  if (flip_bytes_ && got != 0 && counts_.messages_received % 7 == 6) data[got / 2] ^= std::byte{1};
#endif
}

inline void engine::on_packet(peer from, transport::envelope head, std::span<const std::byte> payload) noexcept {
  if (express_ != nullptr) {
    express_receive& wanted = *express_;
    express_ = nullptr;
    if (head.first == wanted.head.first && (head.second & wanted.second_mask) == wanted.head.second &&
        from == wanted.from) [[likely]] {
      const std::size_t got = payload.size() <= wanted.size ? payload.size() : wanted.size;
      base::copy_bytes(wanted.data, payload.data(), got);
      count_receive(wanted.data, got);
      wanted.head.second = head.second;
      wanted.total = payload.size();
      wanted.done = true;
      return;
    }
    // Something else came first: the receive takes its place in the matcher before that something is looked at.
    settle_express(wanted);
  }
  dispatch(from, head, payload);
}

}  // namespace verbena::runtime
