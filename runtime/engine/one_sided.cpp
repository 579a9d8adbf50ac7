// One-sided access: the fabric does it where it can; otherwise packets ask the target's engine, which does it
// inside its progress and replies. What the initiator remembers is a message of the engine's pool:
//
//   one_sided -> native -> done               the fabric has it
//   one_sided -> asking -> asked -> done      pieces wait for room; the reply is awaited
//
// and the target, where the reply waits for room, another one: replying -> (gone).
//
// Order: whatever a fabric or an earlier message keeps waiting goes through the peer's FIFO, so a message
// that is sent after a put arrives after it. Memory of this rank is reached only through the table of what
// was registered, by slot, generation, address and size of a key; nothing in a packet is believed.
#include "runtime/engine/engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace verbena::runtime {
namespace {

using wire::one_sided_kind;

constexpr int pieces_per_turn = 8;

bool moves_out(one_sided_kind what) noexcept {
  return what == one_sided_kind::put || what == one_sided_kind::put_with_flag;
}

bool is_atomic(one_sided_kind what) noexcept {
  return what == one_sided_kind::fetch_add || what == one_sided_kind::compare_swap;
}

/// Atomic with respect to everybody who comes to this word, be it through this engine or through memory that
/// a node shares.
std::uint64_t update(std::byte* at, const wire::one_sided_body& how) noexcept {
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
  if (how.what == one_sided_kind::fetch_add)
    return word.fetch_add(how.operands[0], std::memory_order_acq_rel);
  std::uint64_t expected = how.operands[0];
  word.compare_exchange_strong(expected, how.operands[1], std::memory_order_acq_rel);
  return expected;
}

errc to_errc(std::uint8_t of_packet) noexcept {
  const auto why = static_cast<errc>(of_packet);
  return why == errc::success || why == errc::access_denied || why == errc::invalid_argument
             ? why
             : errc::malformed;
}

}  // namespace

/// The range, if the key is right; `why` says what is wrong with it otherwise.
std::byte* engine::resolve(const wire::one_sided_body& want, errc& why) const noexcept {
  std::byte* const at = exposed_.resolve(want.key, want.offset, want.bytes);
  why = at == nullptr ? errc::access_denied : errc::success;
  if (at == nullptr || !is_atomic(want.what)) return at;
  if (want.bytes == sizeof(std::uint64_t) &&
      reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) == 0)
    return at;
  why = errc::invalid_argument;
  return nullptr;
}

void engine::one_sided(operation& op, engine_peer& to, const one_sided_call& call) {
  op.start();
  ++counts_.one_sided;
  const std::size_t bytes = call.body.bytes;
  op.result.bytes = bytes;
  if (to.down != errc::success) return op.complete(to.down);
  if (to.index == self_) return op.complete(access_own(call));
  message& m = messages_.take();
  m.op = &op;
  op.runner = &m;
  m.data = static_cast<std::byte*>(call.local);
  m.size = bytes;
  m.with = &to;
  m.key = call.native;
  m.call = call.body;
  m.head = {};
  m.at = step::one_sided;
  ++access_of(to).under_way;
  enqueue(to, m);
  if (!polling_ && &to.waiting.front() == &m) flush();
}

errc engine::access_own(const one_sided_call& call) {
  const wire::one_sided_body& want = call.body;
  if (want.what == one_sided_kind::confirm) return errc::success;
  errc why = errc::success;
  std::byte* const at = resolve(want, why);
  if (at == nullptr) return why;
  if (is_atomic(want.what)) {
    const std::uint64_t old = update(at, want);
    std::memcpy(call.local, &old, sizeof old);
  } else if (want.bytes != 0) {
    if (moves_out(want.what))
      std::memmove(at, call.local, want.bytes);
    else
      std::memmove(call.local, at, want.bytes);
  }
  if (want.what == one_sided_kind::put_with_flag) accesses_[self_].flags.push_back(want.operands[0]);
  return errc::success;
}

void engine::finish_one_sided(message& m, errc why) noexcept {
  --access_of(*m.with).under_way;
  finish(m, why);
}

post_result engine::post_native(message& m) {
  const peer to{m.with->index};
  if (m.key.fabric != static_cast<std::uint8_t>(fabric_.way_to(to))) return post_result::down;
  const transport::buffer local{m.data, m.size};
  const wire::one_sided_body& c = m.call;
  switch (c.what) {
    case one_sided_kind::put:
      return fabric_.put(to, local, m.key, c.offset, m.moving);
    case one_sided_kind::get:
      return fabric_.get(to, local, m.key, c.offset, m.moving);
    case one_sided_kind::put_with_flag:
      return fabric_.put_with_flag(to, local, m.key, c.offset, c.operands[0], m.moving);
    case one_sided_kind::fetch_add:
      return fabric_.fetch_add(to, local, m.key, c.offset, c.operands[0], m.moving);
    case one_sided_kind::compare_swap:
      return fabric_.compare_swap(to, local, m.key, c.offset, c.operands[0], c.operands[1], m.moving);
    case one_sided_kind::confirm:
      break;
  }
  return post_result::down;
}

post_result engine::advance_one_sided(message& m) {
  if (m.at == step::asking) return advance_asking(m);
  m.moving.owner = &m;
  m.moving.on_done = [](operation& op) noexcept {
    auto& done = *static_cast<message*>(op.owner);
    done.with->host->finish_one_sided(done, op.result.error);
  };
  const post_result result = post_native(m);
  if (result == post_result::again) return result;
  if (result == post_result::down) {  // not this fabric's business, or its peer is gone: packets will tell
    m.moving.on_done = nullptr;
    m.at = step::asking;
    return advance_asking(m);
  }
  m.unlink();
  --waiting_;
  if (result == post_result::pending) {
    m.at = step::native;
    return post_result::done;
  }
  // Between ranks of a node it has been carried out; elsewhere it may be on its way.
  if (fabric_.way_to(peer{m.with->index}) != transport::route::shm) access_of(*m.with).unconfirmed = true;
  finish_one_sided(m, errc::success);
  return result;
}

/// Never gives way in between: what is sent after a put must come after all of it.
post_result engine::advance_asking(message& m) {
  engine_peer& to = *m.with;
  const bool out = moves_out(m.call.what);
  for (;;) {
    const std::size_t left = out ? m.size - m.moved : 0;
    const std::size_t piece = std::min(left, to.packet_bytes - sizeof(wire::one_sided_body));
    const bool last = piece == left;
    wire::one_sided_body body = m.call;
    body.origin = m.self();
    body.last = last ? 1 : 0;
    if (out) {
      body.offset += m.moved;
      body.bytes = piece;
      if (!last) body.what = one_sided_kind::put;
    }
    wire::header head = m.head;
    head.what = wire::kind::one_sided;
    const post_result result =
        fabric_.send(peer{to.index}, wire::encode(head), sizeof body + piece, [&](std::byte* at) {
          at = wire::put(at, body);
          base::copy_bytes(at, m.data + m.moved, piece);
        });
    if (result != post_result::done) return result;
    m.moved += piece;
    if (!last) continue;
    m.unlink();
    --waiting_;
    m.moved = 0;  // of what comes back
    m.at = step::asked;
    return post_result::done;
  }
}

void engine::on_one_sided(engine_peer& from, std::span<const std::byte> payload) {
  const auto body = wire::take<wire::one_sided_body>(payload);
  if (!body || body->what < one_sided_kind::put || body->what > one_sided_kind::confirm || body->last > 1)
    return malformed();
  wire::one_sided_body reply = *body;
  reply.operands[0] = 0;
  errc why = errc::success;
  if (body->what != one_sided_kind::confirm) {
    if (moves_out(body->what) ? payload.size() != body->bytes : !payload.empty()) return malformed();
    std::byte* const at = resolve(*body, why);
    if (at != nullptr) {
      if (is_atomic(body->what)) reply.operands[0] = update(at, *body);
      if (moves_out(body->what)) base::copy_bytes(at, payload.data(), payload.size());
      if (body->what == one_sided_kind::put_with_flag) on_flag(peer{from.index}, body->operands[0]);
    }
  }
  if (body->last == 0) return;  // if this piece was refused, so is the last
  reply.error = static_cast<std::uint8_t>(why);
  message& m = messages_.take();
  m.with = &from;
  m.head.what = wire::kind::one_sided_reply;
  m.call = reply;
  m.size = body->what == one_sided_kind::get && why == errc::success ? body->bytes : 0;
  m.at = step::replying;
  enqueue(from, m);
}

post_result engine::advance_reply(message& m) {
  engine_peer& to = *m.with;
  for (int i = 0; i < pieces_per_turn; ++i) {
    wire::one_sided_body body = m.call;
    const std::size_t piece = std::min(m.size - m.moved, to.packet_bytes - sizeof body);
    const std::byte* data = nullptr;
    if (m.size != 0) {  // a get: the range may have been withdrawn since the last piece
      data = exposed_.resolve(m.call.key, m.call.offset, m.size);
      if (data == nullptr) {
        m.call.error = body.error = static_cast<std::uint8_t>(errc::access_denied);
        m.size = m.moved = 0;
        --i;
        continue;
      }
    }
    body.offset = m.moved;
    body.bytes = piece;
    body.last = m.moved + piece == m.size ? 1 : 0;
    const post_result result =
        fabric_.send(peer{to.index}, wire::encode(m.head), sizeof body + piece, [&](std::byte* at) {
          at = wire::put(at, body);
          if (piece != 0) base::copy_bytes(at, data + m.moved, piece);
        });
    if (result != post_result::done) return result;
    m.moved += piece;
    if (body.last == 0) continue;
    m.unlink();
    --waiting_;
    messages_.release(m);
    return result;
  }
  return post_result::done;
}

void engine::on_one_sided_reply(engine_peer& from, std::span<const std::byte> payload) {
  const auto body = wire::take<wire::one_sided_body>(payload);
  message* m = body ? messages_.find(body->origin) : nullptr;
  if (m == nullptr || m->with != &from || m->at != step::asked || body->what != m->call.what)
    return malformed();
  const bool get = body->what == one_sided_kind::get;
  if (body->error != 0) return finish_one_sided(*m, body->last == 1 ? to_errc(body->error) : errc::malformed);
  if (get) {
    if (body->offset != m->moved || payload.size() != body->bytes || payload.size() > m->size - m->moved)
      return finish_one_sided(*m, errc::malformed);
    base::copy_bytes(m->data + m->moved, payload.data(), payload.size());
    m->moved += payload.size();
    if (body->last == 0) return;
    if (m->moved != m->size) return finish_one_sided(*m, errc::malformed);
  }
  if (is_atomic(body->what)) std::memcpy(m->data, &body->operands[0], sizeof body->operands[0]);
  finish_one_sided(*m, errc::success);
}

void engine::on_flag(peer from, std::uint64_t word) noexcept {
  meet(from);
  accesses_[from.index].flags.push_back(word);
}

std::optional<std::uint64_t> engine::take_flag(peer from) {
  const auto found = accesses_.find(from.index);
  if (found == accesses_.end() || found->second.flags.empty()) return std::nullopt;
  const std::uint64_t word = found->second.flags.front();
  found->second.flags.pop_front();
  return word;
}

engine::confirmation engine::confirmed(peer to) const noexcept {
  const auto found = accesses_.find(to.index);
  if (found == accesses_.end()) return confirmation::all;
  if (found->second.under_way != 0) return confirmation::under_way;
  return found->second.unconfirmed ? confirmation::unknown : confirmation::all;
}

std::vector<peer> engine::accessed() const {
  std::vector<peer> all;
  for (const auto& [index, with] : accesses_)
    if (with.under_way != 0 || with.unconfirmed) all.emplace_back(index);
  return all;
}

void engine::confirm(operation& op, engine_peer& to) {
  access_of(to).unconfirmed = false;
  one_sided_call nothing;
  nothing.body.what = one_sided_kind::confirm;
  one_sided(op, to, nothing);
}

}  // namespace verbena::runtime
