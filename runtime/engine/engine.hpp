// The engine of one context: matching and protocols over whatever fabric leads to a peer. It turns sends and receives
// into packets and one-sided transfers, and packets into completions. A state machine: it never blocks, never sleeps,
// never reads a clock; time comes in through progress(now). One thread at a time.
//
// Protocols, by size and by what the way to the peer can do (choose() in protocol.hpp):
//   eager        one packet, or several pieces in a row; nobody is asked
//   together     RTS, then both ends copy (shared memory)
//   put          RTS, CTS with the key of the registered target, RDMA Write, FIN
//   stream       RTS, CTS, DATA packets; also of memory with gaps (cursor.hpp), whatever the way could do
// Per peer, what a fabric refuses (`again`) waits in one FIFO, so messages never overtake each other. What arrives before
// its receive is charged to its sender's budget (budget.hpp); over budget, eager messages go as envelopes and continue
// like streams.
//
// It must not know how ranks were started, nor how a thread waits.
#pragma once

#include "base/block_pool.hpp"
#include "base/clock.hpp"
#include "base/copy.hpp"
#include "base/job_page.hpp"
#include "base/paged_table.hpp"
#include "base/settings.hpp"
#include "runtime/collective_port.hpp"
#include "runtime/counters.hpp"
#include "runtime/engine/budget.hpp"
#include "runtime/engine/context_table.hpp"
#include "runtime/engine/envelope_queue.hpp"
#include "runtime/engine/matcher.hpp"
#include "runtime/engine/message.hpp"
#include "runtime/engine/protocol.hpp"
#include "runtime/engine/wire.hpp"
#include "transport/key_table.hpp"
#include "transport/routed_fabric.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

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
  transport::routed_fabric::channel channel = nullptr;  ///< the short way, where there is one
  errc down = errc::success;  ///< why nothing can be sent to it any more
  bool leaving = false;       ///< it receives nothing more that it was not told of
  bool told_leaving = false;  ///< it knows that of us
  engine* host = nullptr;
  send_budget outgoing;     ///< for what we send to it
  receive_budget incoming;  ///< for what it sends
  bool report_due = false;  ///< in `reporting_`: it is to hear what is out of the way
  bool ask_due = false;     ///< the same: it is to be asked what it waits for
  bool tell_due = false;    ///< the same: it has asked that of us
  std::uint32_t in_matcher = 0;            ///< its messages that lie in the matcher
  std::unique_ptr<envelope_queue> behind;  ///< those that came after them; made when first needed
};

/// Where a message goes, and what its header says of the sender: fixed per communicator and receiver.
struct envelope_route {
  engine_peer& to;
  std::uint32_t context = 0;  ///< with the collective bit, if any
  std::int32_t self = 0;      ///< our rank in that communicator
};

/// One access to another rank's memory. `native` is the target fabric's key, `body.key` the target engine's own; the body
/// says what, where and how much. `local`: the user's memory, read or written; of an atomic 8 bytes for the old value.
struct one_sided_call {
  void* local = nullptr;
  transport::remote_key native;
  wire::one_sided_body body;
};

/// What a wait is about, for whoever words it.
struct wait_report {
  base::waiting_in call = base::waiting_in::something;
  bool own = false;       ///< of the operation asked for; otherwise of another message that is pending
  bool collective = false;
  std::uint32_t with = ~std::uint32_t{0};  ///< job rank; ~0: any, or not known
  tag label = any_tag;
  std::size_t bytes = 0;
  step at = step::idle;
};

class engine {
 public:
  engine(transport::routed_fabric& fabric, const base::settings& settings, std::uint32_t self, std::uint32_t job_size);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Starts a send of `bytes` bytes. The operation must be idle; the buffer belongs to the engine until it is done.
  /// `synchronous`: not done before the message is matched. `form`, here and below: of memory that does not lie in a row,
  /// of `bytes` bytes altogether; it must stay as long as the buffer.
  void send(operation& op, const envelope_route& way, const void* data, std::size_t bytes, tag label,
            bool synchronous = false, const shape* form = nullptr);
  /// Sends now if one packet does it and the fabric takes it; false: nothing happened, use send().
  bool send_at_once(const envelope_route& way, const void* data, std::size_t bytes, tag label);
  /// The same with a function that writes the bytes where they are told to go.
  template <class Writer>
  [[gnu::always_inline]] bool send_at_once(const envelope_route& way, std::size_t bytes, tag label, Writer&& write);

  /// The same in the peer's turn, whatever waits for others; false also if something waits for this peer.
  bool send_in_turn(const envelope_route& way, const user_memory& data, tag label);
  /// True if a copy of such a message may wait here for room, on the receiver's budget.
  bool may_keep(const engine_peer& to, std::size_t bytes) const noexcept;
  /// Keeps that copy: the send is over for its caller.
  void keep(const envelope_route& way, const user_memory& data, tag label);
  /// Copies that have not left yet.
  bool keeps_messages() const noexcept { return kept_ != 0; }

  /// Starts a receive; `from` null: any source. `want.source` is a rank of the communicator.
  void receive(operation& op, const peer* from, const match_key& want, void* data, std::size_t bytes,
               const shape* form = nullptr);
  /// Takes a receive back if it is not matched yet: completes it with errc::cancelled and returns true.
  bool cancel(operation& op);

  /// A message that is here and not received.
  struct sighting {
    rank source{};
    tag label{};
    std::size_t total = 0;
  };
  /// The oldest message that a receive with these arguments would get, if one has arrived.
  std::optional<sighting> peek(const peer* from, const match_key& want) noexcept;
  /// Takes it out of matching, for `accept`; null: none has arrived.
  parcel* take(const peer* from, const match_key& want);
  /// Receives what was taken out. The parcel is the engine's again.
  void accept(operation& op, parcel& p, void* data, std::size_t bytes, const shape* form = nullptr) {
    op.start();
    accept_parcel(op, p, {static_cast<std::byte*>(data), bytes, form});
  }

  /// A message that receive_next took.
  struct arrival {
    tag label;
    std::size_t total = 0;  ///< its size; more than the room: truncated
  };
  /// The short way of a blocking receive: copies the next packet of that peer if it is a whole message with the expected
  /// header (pack(); `second_mask` leaves out the tag for any_tag), and touches nothing else. Only if `next_allowed`.
  transport::next_packet receive_next(engine_peer& from, transport::envelope expected, std::uint64_t second_mask,
                                      std::byte* data, std::size_t room, arrival& got);
  /// True if the next packet of a peer may be taken by a receive that is not posted: nothing older could want it, and no
  /// message that is older is waiting.
  bool next_allowed() const noexcept { return !matcher_.has_posted() && !matcher_.has_unexpected(); }

  /// The context is about to go: receives without a message end (cancelled), and peers that have something of ours in
  /// their hands are told. Afterwards make progress until nothing_pending().
  void begin_leaving();

  /// From here on no operation is completed and nothing is sent: communicators go, and what is still pending in them (after a
  /// death) goes with them. Peers learn the rest from this rank's end.
  void close() noexcept { closed_ = true; }

  /// One tick: polls, answers, retries, advances tasks. True if something moved.
  bool progress(base::nanoseconds now);

  void add_task(progress_task& task) noexcept { tasks_.push_back(task); }
  // One-sided access (one_sided.cpp).
  /// Starts an access; `local` belongs to the engine until it is done. Puts end when they were carried out or, where a
  /// fabric promises that it will be, when `local` may be reused.
  void one_sided(operation& op, engine_peer& to, const one_sided_call& call);
  /// What others may reach by packets.
  transport::key_table& exposed() noexcept { return exposed_; }
  /// The oldest word that came with a put of that peer and was not taken yet.
  std::optional<std::uint64_t> take_flag(peer from);
  enum class confirmation : std::uint8_t { all, under_way, unknown };
  /// Has everything been carried out that this rank started at the peer? `unknown`: ask, by `confirm`.
  confirmation confirmed(peer to) const noexcept;
  void confirm(operation& op, engine_peer& to);
  /// Peers of whom that is not known.
  std::vector<peer> accessed() const;

  // Communicators (contexts.cpp): which are there, and what becomes of their messages when they go.
  context_table& contexts() noexcept { return contexts_; }
  /// The members have agreed on the slot this rank holds. Returns the context id. What came early is there from now on.
  std::uint32_t install_context(std::uint32_t slot, std::uint64_t generation);
  /// They have not: gives the slot back.
  void drop_context(std::uint32_t slot);
  /// True while a send or receive of the communicator is under way.
  bool context_busy(std::uint32_t context) noexcept;
  /// It was freed, and nothing will be posted in it any more: what is pending goes on, what nobody has asked for is dropped,
  /// now and as it comes. Otherwise two ranks that free it with unreceived sends to each other would wait for ever.
  void close_context(std::uint32_t context);
  /// Drops the messages nobody has received; their senders learn of it if they wait.
  void forget_context(std::uint32_t context);

  // Long waits (inquiry.cpp): ranks ask each other what they wait for where no page that both see tells.
  /// What to tell others from here on; nothing: this rank does not wait.
  void waits_for(const wire::wait_body& now) noexcept { own_wait_ = now; }
  /// Asks a peer; what it told before is forgotten.
  void ask_wait(peer whom);
  /// The answer is not waited for any more; a question that has not left yet does not leave.
  void forget_ask(peer whom) noexcept;
  /// Its answer, once it is there.
  std::optional<wire::wait_body> told_wait(peer by) const;

  bool nothing_pending() const noexcept { return messages_.live() == 0; }
  /// Something was refused by a fabric and waits for room.
  bool retrying() const noexcept { return waiting_ != 0 || !reporting_.empty(); }
  bool peer_down(peer p) noexcept { return peers_[p.index].down != errc::success; }
  errc why_down(peer p) noexcept { return peers_[p.index].down; }
  bool any_peer_down() const noexcept { return any_down_; }
  /// A rank of this communicator has failed: of any source nothing is waited for there any more.
  bool any_failed_in(std::uint32_t context) const noexcept;
  /// Who knows which peers are in which communicator; until then all are in each.
  using membership = bool (*)(const void* of, std::uint32_t context, peer who) noexcept;
  void ask_membership(membership in, const void* of) noexcept {
    in_ = in;
    members_of_ = of;
  }
  /// What is known of a pending operation, or, for null and for what is not a message's, of the oldest pending message.
  wait_report report(const operation* op) noexcept;
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
  post_result advance_packed(message& m);
  post_result send_control(message& m, wire::kind what);
  void flush();
  void fail_waiting(engine_peer& p, errc why) noexcept;
  void finish(message& m, errc error) noexcept;

  void count_receive(std::byte* data, std::size_t got) noexcept;
  void release_charge(engine_peer& from, std::uint64_t charge) noexcept {
    from.incoming.released += charge;
    if (from.incoming.owed() >= report_step_) [[unlikely]]
      owe_report(from);
  }
  void owe_report(engine_peer& from) noexcept;

  // receiving (receive.cpp)
  void on_eager(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_eager_first(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_eager_more(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  message* match(engine_peer& from, const wire::header& head);
  void post(operation& op, engine_peer* from, const match_key& want, const user_memory& room);
  void accept_parcel(operation& op, parcel& p, const user_memory& room);
  void store_piece(message& m, std::span<const std::byte> piece) noexcept;
  void finish_receive(message& m, errc error) noexcept;
  void complete_receive(operation& op, const wire::header& head, const user_memory& room, std::size_t total,
                        std::size_t got, errc error) noexcept;

  // what came before its receive (parking.cpp)
  parcel& park(engine_peer& from, const wire::header& head, std::size_t total);
  parcel& park_data(engine_peer& from, const wire::header& head, std::size_t total,
                    std::span<const std::byte> payload);
  void park_envelope(engine_peer& from, const wire::header& head, std::size_t total, wire::handle sender,
                     std::uint8_t method);
  void keep_parcel(engine_peer& from, parcel& p);
  void unpark(parcel& p) noexcept;
  parcel& unfold(engine_peer& from, const queued_envelope& e);
  void refill(engine_peer& from);
  parcel* take_parcel(const match_key& want, const engine_peer* only);
  parcel* take_from_behind(engine_peer& from, const match_key& want);
  void drop_incomplete(engine_peer& gone) noexcept;
  void report_charges();
  void on_grant(engine_peer& from, std::span<const std::byte> payload);
  void on_envelope_only(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_sync_ack(engine_peer& from, std::span<const std::byte> payload);
  void acknowledge(engine_peer& from, wire::handle sender);

  // rendezvous (rendezvous.cpp)
  void on_rts(engine_peer& from, const wire::header& head, std::span<const std::byte> payload);
  void on_cts(engine_peer& from, std::span<const std::byte> payload);
  void on_fin(engine_peer& from, std::span<const std::byte> payload);
  void on_data(engine_peer& from, std::span<const std::byte> payload);
  void begin_rendezvous(message& m, const wire::rts_body& rts, const wire::header& head);
  void start(message& m);
  void answer();

  // long waits (inquiry.cpp)
  void on_ask_wait(engine_peer& from);
  void on_tell_wait(engine_peer& from, std::span<const std::byte> payload);
  bool inquire(engine_peer& p);

  // leaving (leaving.cpp)
  void on_leave(engine_peer& from);
  // one_sided.cpp
  struct access {  ///< what there is with one peer
    std::size_t under_way = 0;  ///< started here and not done
    bool unconfirmed = false;   ///< some are done, but perhaps not carried out yet
    std::deque<std::uint64_t> flags;
  };
  access& access_of(const engine_peer& p) { return accesses_[p.index]; }
  std::byte* resolve(const wire::one_sided_body& want, errc& why) const noexcept;
  errc access_own(const one_sided_call& call);
  void finish_one_sided(message& m, errc why) noexcept;
  post_result post_native(message& m);
  post_result advance_one_sided(message& m);
  post_result advance_asking(message& m);
  post_result advance_reply(message& m);
  void on_one_sided(engine_peer& from, std::span<const std::byte> payload);
  void on_one_sided_reply(engine_peer& from, std::span<const std::byte> payload);

  // contexts.cpp
  bool stale(const wire::header& head) const noexcept {
    return contexts_.of(head.context.value) == context_table::standing::stale;
  }
  void drop_stale(engine_peer& from, const wire::header& head, std::optional<wire::handle> waiting = std::nullopt);
  void drop_stale_data(engine_peer& from, const wire::header& head, std::size_t total);
  void drop_parcels_of(std::uint32_t which, std::uint32_t but);
  template <class Unwanted>
  void drop_parcels(Unwanted&& unwanted);
  post_result advance_answer(message& m);

  void malformed() noexcept { ++counts_.malformed; }
  static match_key key_of(const wire::header& head) noexcept;

  transport::routed_fabric& fabric_;
  std::size_t eager_override_;
  std::uint64_t budget_;
  std::uint64_t report_step_;
  std::uint32_t matcher_share_;  ///< messages of one peer that may lie in the matcher before its later ones queue
  std::uint32_t self_;
  bool any_down_ = false;
  std::vector<peer> failed_;  ///< those that are down and did not leave in good order
  membership in_ = [](const void*, std::uint32_t, peer) noexcept { return true; };
  const void* members_of_ = nullptr;
  bool closed_ = false;   ///< the context goes: operations may be gone
  bool polling_ = false;  ///< inside fabric_.poll: nothing may be posted, sends only queue up
  bool flip_bytes_ = false;  ///< test builds: corrupt a received byte now and then
  std::size_t waiting_ = 0;  ///< messages in all FIFOs
  std::size_t kept_ = 0;     ///< bytes of copies in them
  base::nanoseconds now_ = 0;
  counters counts_;
  base::paged_table<engine_peer> peers_;
  matcher matcher_;
  context_table contexts_;
  transport::key_table exposed_;
  std::unordered_map<std::uint32_t, access> accesses_;
  base::intrusive_list<engine_peer> backlog_;
  base::intrusive_list<message> starting_;
  base::intrusive_list<progress_task> tasks_;
  std::vector<engine_peer*> reporting_;  ///< hear of released charge, and of waits, after the next poll
  wire::wait_body own_wait_;
  std::unordered_map<std::uint32_t, wire::wait_body> told_waits_;
  std::vector<engine_peer*> queueing_;   ///< have messages behind those in the matcher
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

template <class Writer>
[[gnu::always_inline]] inline bool engine::send_at_once(const envelope_route& way, std::size_t bytes, tag label,
                                                        Writer&& write) {
  engine_peer& to = way.to;
  if (bytes > to.single_eager || waiting_ != 0 || !to.outgoing.covers(bytes)) [[unlikely]]
    return false;  // single_eager is 0 once the peer is down
  const transport::envelope head = wire::pack(wire::kind::eager, way.context, way.self, label.value);
  const post_result result = to.channel != nullptr ? fabric_.send_on(to.channel, head, bytes, write)
                                                   : fabric_.send(peer{to.index}, head, bytes, write);
  if (result != post_result::done) [[unlikely]]
    return false;
  to.outgoing.spend(bytes);
  ++counts_.messages_sent;
  ++counts_.eager_sent;
  counts_.bytes_sent += bytes;
  return true;
}

[[gnu::always_inline]] inline bool engine::send_at_once(const envelope_route& way, const void* data, std::size_t bytes,
                                                        tag label) {
  const auto* from = static_cast<const std::byte*>(data);
  return send_at_once(way, bytes, label, [&](std::byte* at) { base::copy_bytes(at, from, bytes); });
}

[[gnu::always_inline]] inline transport::next_packet engine::receive_next(engine_peer& from,
                                                                          transport::envelope expected,
                                                                          std::uint64_t second_mask, std::byte* data,
                                                                          std::size_t room, arrival& got) {
  if (from.channel == nullptr || from.open_receive != nullptr) return transport::next_packet::other;
  return fabric_.take_next(from.channel, now_, [&](transport::envelope head, std::span<const std::byte> payload) {
    if (head.first != expected.first || (head.second & second_mask) != expected.second) [[unlikely]]
      return false;
    const std::size_t fits = payload.size() <= room ? payload.size() : room;
    base::copy_bytes(data, payload.data(), fits);
    count_receive(data, fits);
    release_charge(from, charge_of(payload.size()));
    got = {.label = tag{static_cast<std::int32_t>(head.second >> 32)}, .total = payload.size()};
    return true;
  });
}

inline void engine::count_receive([[maybe_unused]] std::byte* data, std::size_t got) noexcept {
  ++counts_.messages_received;
  counts_.bytes_received += got;
#ifdef VERBENA_TEST_HOOKS
  if (flip_bytes_ && got != 0 && data != nullptr && counts_.messages_received % 7 == 6) data[got / 2] ^= std::byte{1};
#endif
}

}  // namespace verbena::runtime
