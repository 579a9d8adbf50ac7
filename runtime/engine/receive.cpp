// Receiving: posting, matching, eager data.
#include "runtime/engine/engine.hpp"

#include <algorithm>

namespace verbena::runtime {

match_key engine::key_of(const wire::header& head) noexcept {
  return {head.context.value, rank{head.source}, tag{head.label}};
}

void engine::receive(operation& op, const peer* from, const match_key& want, void* data, std::size_t bytes,
                     const shape* form) {
  op.start();
  const user_memory room{static_cast<std::byte*>(data), bytes, form};
  engine_peer* source = from == nullptr ? nullptr : &meet(*from);
  if (parcel* waiting = take_parcel(want, source)) return accept_parcel(op, *waiting, room);
  if (source != nullptr && source->down != errc::success) return op.complete(source->down);
  if (source == nullptr && any_failed_in(want.context)) [[unlikely]]
    return op.complete(errc::peer_failed);
  post(op, source, want, room);
}

void engine::post(operation& op, engine_peer* from, const match_key& want, const user_memory& room) {
  message& m = messages_.take();
  m.op = &op;
  op.runner = &m;
  m.data = room.data;
  m.size = room.bytes;
  m.form = room.form;
  m.with = from;
  m.at = step::posted;
  m.posted.holder = &m;
  matcher_.post(m.posted, want);
}

bool engine::cancel(operation& op) {
  if (!op.pending()) return false;
  auto& m = *static_cast<message*>(op.runner);
  if (m.at != step::posted) return false;
  matcher_.remove(m.posted);
  finish(m, errc::cancelled);
  return true;
}

message* engine::match(engine_peer& from, const wire::header& head) {
  posted_receive* found = matcher_.take_posted(key_of(head));
  if (found == nullptr) return nullptr;
  auto* m = static_cast<message*>(found->holder);
  m->with = &from;
  m->head = head;
  return m;
}

void engine::on_eager(engine_peer& from, const wire::header& head, std::span<const std::byte> payload) {
  if (message* m = match(from, head)) {
    m->total = payload.size();
    store_piece(*m, payload);
    release_charge(from, charge_of(payload.size()));
    finish_receive(*m, errc::success);
    return;
  }
  if (stale(head)) return drop_stale_data(from, head, payload.size());
  keep_parcel(from, park_data(from, head, payload.size(), payload));
}

void engine::on_eager_first(engine_peer& from, const wire::header& head, std::span<const std::byte> payload) {
  const auto body = wire::take<wire::eager_body>(payload);
  if (!body || payload.size() > body->total || body->total > largest_eager || from.open_receive != nullptr ||
      from.open_parcel != nullptr)
    return malformed();
  const bool synchronous = (head.flags & wire::flag_bits::synchronous) != 0;
  if (message* m = match(from, head)) {
    m->total = body->total;
    m->at = step::receiving;
    release_charge(from, charge_of(body->total));
    if (synchronous) acknowledge(from, body->sender);
    store_piece(*m, payload);
    if (m->moved == m->total) return finish_receive(*m, errc::success);
    from.open_receive = m;
    return;
  }
  if (stale(head)) {
    if (synchronous) acknowledge(from, body->sender);
    return drop_stale_data(from, head, body->total);
  }
  parcel& p = park_data(from, head, body->total, payload);
  if (synchronous) p.waits = body->sender;
  if (p.arrived != p.total) from.open_parcel = &p;
  keep_parcel(from, p);
}

void engine::on_eager_more(engine_peer& from, const wire::header& head, std::span<const std::byte> payload) {
  if (message* m = from.open_receive) {
    if (payload.size() > m->total - m->moved) return malformed();
    store_piece(*m, payload);
    if (m->moved != m->total) return;
    from.open_receive = nullptr;
    return finish_receive(*m, errc::success);
  }
  parcel* p = from.open_parcel;
  // Its beginning was dropped, perhaps before the place of its communicator was held for another one.
  if (p == nullptr && contexts_.of(head.context.value) != context_table::standing::live) return;
  if (p == nullptr || payload.size() > p->total - p->arrived) return malformed();
  if (p->data != nullptr) base::copy_bytes(p->data + p->arrived, payload.data(), payload.size());
  p->arrived += payload.size();
  if (p->arrived == p->total) from.open_parcel = nullptr;
}

/// Appends a piece; what does not fit the buffer is dropped and remembered as truncation.
void engine::store_piece(message& m, std::span<const std::byte> piece) noexcept {
  if (m.size > m.moved) write_piece(m.memory(), m.moved, piece.data(), std::min(m.size - m.moved, piece.size()));
  m.moved += piece.size();
}

/// A receive finds its message already here, taken out of the matcher.
void engine::accept_parcel(operation& op, parcel& p, const user_memory& room) {
  engine_peer& from = *p.from;
  const bool whole = !p.announced && p.arrived == p.total;
  if (!whole && from.down != errc::success) {  // what is missing will not come
    const errc why = from.down;
    unpark(p);
    return op.complete(why);
  }
  if (p.synchronous() && from.down == errc::success) acknowledge(from, p.waits);
  if (whole) {
    const wire::header head = p.head;
    const std::size_t total = p.total, got = std::min(room.bytes, total);
    const errc error = p.refused ? errc::malformed : errc::success;
    if (!p.refused) write_piece(room, 0, p.data, got);
    unpark(p);
    complete_receive(op, head, room, total, got, error);
  } else {
    message& m = messages_.take();
    m.op = &op;
    op.runner = &m;
    m.data = room.data;
    m.size = room.bytes;
    m.form = room.form;
    m.with = &from;
    m.head = p.head;
    if (p.announced) {
      begin_rendezvous(m, p.rts, p.head);
    } else {  // the pieces still to come go straight into the buffer
      m.total = p.total;
      m.at = step::receiving;
      m.refused = p.refused;
      store_piece(m, {p.data, p.refused ? 0 : p.arrived});
      m.moved = p.arrived;
      from.open_receive = &m;
      from.open_parcel = nullptr;
    }
    unpark(p);
  }
  if (!polling_ && (!starting_.empty() || retrying())) answer();
}

void engine::finish_receive(message& m, errc error) noexcept {
  operation& op = *m.op;
  const wire::header head = m.head;
  const user_memory room = m.memory();
  const std::size_t total = m.total;
  if (m.refused) error = errc::malformed;
  const std::size_t got = m.at == step::refuse ? 0 : std::min(room.bytes, total);  // refused: no data has moved
  messages_.release(m);
  complete_receive(op, head, room, total, got, error);
}

void engine::complete_receive(operation& op, const wire::header& head, const user_memory& room, std::size_t total,
                              std::size_t got, errc error) noexcept {
  if (error != errc::success) got = 0;
  count_receive(room.form == nullptr ? room.data : nullptr, got);
  op.result = {.source = rank{head.source}, .label = tag{head.label}, .bytes = got, .sent_bytes = total,
               .error = errc::success};
  op.complete(error == errc::success && total > room.bytes ? errc::truncated : error);
}

}  // namespace verbena::runtime
