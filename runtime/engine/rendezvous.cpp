// Rendezvous: the sender announces (RTS), the receiver decides how the data comes, once it has a buffer for it.
#include "runtime/engine/engine.hpp"

#include <algorithm>

namespace verbena::runtime {

using transport::bulk_method;
using transport::buffer;

void engine::on_rts(engine_peer& from, const wire::header& head, std::span<const std::byte> payload) {
  const auto rts = wire::take<wire::rts_body>(payload);
  if (!rts || rts->method > static_cast<std::uint8_t>(bulk_method::stream)) return malformed();
  if (message* m = match(from, head)) return begin_rendezvous(*m, *rts, head);
  if (stale(head)) return drop_stale(from, head, rts->sender);
  if (rts->key.size == 0) return park_envelope(from, head, rts->total, rts->sender, rts->method);
  parcel& p = park(from, head, rts->total);
  p.announced = true;
  p.rts = *rts;
  keep_parcel(from, p);
}

void engine::on_envelope_only(engine_peer& from, const wire::header& head, std::span<const std::byte> payload) {
  const auto body = wire::take<wire::eager_body>(payload);
  if (!body || body->total > largest_eager) return malformed();
  // The sender has run out of budget: what is free again is worth a word sooner than otherwise.
  if (from.incoming.owed() >= report_step_ / 4 + 1) owe_report(from);
  constexpr auto stream = static_cast<std::uint8_t>(bulk_method::stream);
  if (message* m = match(from, head))
    return begin_rendezvous(*m, {.total = body->total, .sender = body->sender, .key = {}, .method = stream, .reserved = {}},
                            head);
  if (stale(head)) return drop_stale(from, head, body->sender);
  park_envelope(from, head, body->total, body->sender, stream);
}

void engine::on_sync_ack(engine_peer& from, std::span<const std::byte> payload) {
  const auto waits = wire::take<wire::handle>(payload);
  message* m = waits ? messages_.find(*waits) : nullptr;
  if (m == nullptr || m->with != &from || (m->head.flags & wire::flag_bits::synchronous) == 0) return malformed();
  if (m->at == step::unacknowledged) return finish(*m, errc::success);
  if (m->at != step::eager || m->moved == 0) return malformed();
  m->acknowledged = true;  // matched by its first piece
}

/// A synchronous message was matched: its sender, who waits for that, is told.
void engine::acknowledge(engine_peer& from, wire::handle sender) {
  message& m = messages_.take();
  m.with = &from;
  m.at = step::ack;
  m.remote = sender;
  enqueue(from, m);
}

/// Matched: remembers what the sender said; `start` goes on outside of poll.
void engine::begin_rendezvous(message& m, const wire::rts_body& rts, const wire::header& head) {
  m.head = head;
  m.total = rts.total;
  m.remote = rts.sender;
  m.key = rts.key;
  m.method = static_cast<bulk_method>(rts.method);
  m.at = step::starting;
  starting_.push_back(m);
}

void engine::start(message& m) {
  engine_peer& from = *m.with;
  m.unlink();
  if (m.total > m.size) {  // no data moves; the sender is told, and has done its part
    m.at = step::refuse;
    return enqueue(from, m);
  }
  if (m.form != nullptr) m.method = bulk_method::stream;  // a clearance without a key asks for packets
  if (m.method == bulk_method::together) {
    m.at = step::receiving;
    m.moving.owner = &m;
    m.moving.on_done = [](operation& op) noexcept {
      auto& done = *static_cast<message*>(op.owner);
      done.with->host->finish_receive(done, op.result.error);
    };
    const post_result result = fabric_.accept(peer{from.index}, buffer{m.data, m.total}, m.key, m.moving);
    if (result == post_result::down) {
      m.moving.on_done = nullptr;
      finish_receive(m, from.down != errc::success ? from.down : errc::malformed);
    }
    return;
  }
  if (m.method == bulk_method::put) {
    m.region = fabric_.register_memory(peer{from.index}, buffer{m.data, m.total});
    if (!m.region) m.method = bulk_method::stream;  // refused: the data comes through packets instead
  }
  m.at = step::cts;
  enqueue(from, m);
}

post_result engine::send_control(message& m, wire::kind what) {
  engine_peer& to = *m.with;
  const peer p{to.index};
  wire::header head = m.head;
  head.what = what;
  auto post = [&](const auto& body) {
    return fabric_.send(p, wire::encode(head), sizeof body, [&](std::byte* at) { wire::put(at, body); });
  };
  post_result result = post_result::done;
  const step before = m.at;
  switch (before) {
    case step::rts: {
      if (m.method == bulk_method::together && m.key.size == 0) {
        m.moving.owner = &m;
        m.moving.on_done = [](operation& op) noexcept {
          auto& done = *static_cast<message*>(op.owner);
          engine* const self = done.with->host;
          if (done.at == step::rts) --self->waiting_;  // only when the peer died before the announcement left
          self->finish(done, op.result.error);
        };
        result = fabric_.offer(p, buffer{m.data, m.size}, m.key, m.moving);
        // No descriptor free, and perhaps none before this very message is received: it goes without one.
        if (result == post_result::again) m.method = bulk_method::stream;
        else if (result != post_result::pending) return result;
      }
      result = post(wire::rts_body{.total = m.size, .sender = m.self(), .key = m.key,
                                   .method = static_cast<std::uint8_t>(m.method), .reserved = {}});
      if (result == post_result::done) m.at = step::awaiting;
      break;
    }
    case step::cts:
      result = post(wire::cts_body{.sender = m.remote, .receiver = m.self(),
                                   .key = m.region ? m.region.key() : transport::remote_key{}, .bytes = m.total,
                                   .offset = 0});
      if (result == post_result::done) m.at = step::receiving;
      break;
    case step::envelope:
      result = post(wire::eager_body{.total = m.size, .sender = m.self()});
      if (result == post_result::done) m.at = step::awaiting;
      break;
    case step::ack:
      result = post(m.remote);
      break;
    default:  // fin, refuse
      result = post(wire::fin_body{.to = m.remote, .bytes = m.moved,
                                   .error = static_cast<std::uint8_t>(before == step::refuse ? errc::truncated
                                                                                              : m.op->result.error),
                                   .from_sender = before == step::fin, .reserved = {}});
      break;
  }
  if (result != post_result::done) return result;
  m.unlink();
  --waiting_;
  if (before == step::ack) finish(m, errc::success);
  if (before == step::fin) finish(m, m.op->result.error);
  if (before == step::refuse) finish_receive(m, errc::success);  // total > room: reported as truncated
  return result;
}

void engine::on_cts(engine_peer& from, std::span<const std::byte> payload) {
  const auto cts = wire::take<wire::cts_body>(payload);
  message* m = cts ? messages_.find(cts->sender) : nullptr;
  if (m == nullptr || m->with != &from || m->at != step::awaiting || cts->bytes != m->size) return malformed();
  if (m->method == bulk_method::together) {  // the receiver's memory does not lie in a row: it wants packets
    if (cts->key.size != 0 || !fabric_.withdraw(peer{from.index}, m->key)) return malformed();
    m->moving.take_back();
    m->method = bulk_method::stream;
  }
  m->remote = cts->receiver;
  m->key = cts->key;
  m->at = cts->key.size >= m->size && m->method == bulk_method::put ? step::put : step::streaming;
  enqueue(from, *m);
}

post_result engine::advance_put(message& m) {
  engine_peer& to = *m.with;
  if (!m.region) {
    m.region = fabric_.register_memory(peer{to.index}, buffer{m.data, m.size});
    if (!m.region) {  // the receiver takes DATA packets as well as a put
      m.at = step::streaming;
      return post_result::done;
    }
  }
  m.moving.owner = &m;
  m.moving.on_done = [](operation& op) noexcept {
    auto& done = *static_cast<message*>(op.owner);
    done.moved = done.size;
    done.op->result.error = op.result.error;
    done.at = step::fin;
    done.with->host->enqueue(*done.with, done);
  };
  const post_result result = fabric_.put_apart(peer{to.index}, buffer{m.data, m.size}, m.key, 0, m.moving);
  if (result == post_result::again || result == post_result::down) return result;
  m.unlink();
  --waiting_;
  if (result == post_result::done) {
    m.moved = m.size;
    m.at = step::fin;
    enqueue(to, m);
  } else {
    m.at = step::putting;
  }
  return post_result::done;
}

void engine::on_fin(engine_peer& from, std::span<const std::byte> payload) {
  const auto fin = wire::take<wire::fin_body>(payload);
  message* m = fin ? messages_.find(fin->to) : nullptr;
  if (m == nullptr || m->with != &from) return malformed();
  if (fin->from_sender != 0) {
    if (m->at != step::receiving || m->method != bulk_method::put) return malformed();
    return finish_receive(*m, static_cast<errc>(fin->error));
  }
  // The receive was too short: its side reports it; the send is over.
  if (m->at != step::awaiting) return malformed();
  if (m->method == bulk_method::together) {
    if (!fabric_.withdraw(peer{from.index}, m->key)) return malformed();  // accepted and refused: it ends as accepted
    m->moving.take_back();  // the message, and the operation in it, will be used again
  }
  finish(*m, errc::success);
}

void engine::on_data(engine_peer& from, std::span<const std::byte> payload) {
  const auto body = wire::take<wire::data_body>(payload);
  message* m = body ? messages_.find(body->receiver) : nullptr;
  if (m == nullptr || m->with != &from || m->at != step::receiving || body->offset != m->moved ||
      payload.size() > m->total - m->moved || m->method == bulk_method::together)
    return malformed();
  store_piece(*m, payload);
  if (m->moved == m->total) finish_receive(*m, errc::success);
}

}  // namespace verbena::runtime
