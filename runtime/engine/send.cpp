// Sending: eager packets and pieces, and the FIFO of what a fabric refused.
#include "runtime/engine/engine.hpp"

#include <algorithm>

namespace verbena::runtime {
namespace {

/// A stream gives way to other messages to the same peer after so many pieces.
constexpr int pieces_per_turn = 8;

/// One kept copy in a block of them; the payload follows, the next record starts 8-byte aligned.
struct packed_record {
  transport::envelope head;
  std::uint64_t size;
};
static_assert(sizeof(packed_record) == 24);

constexpr std::size_t packed_size(std::size_t bytes) { return sizeof(packed_record) + (bytes + 7) / 8 * 8; }

}  // namespace

void engine::read_limits(engine_peer& p) {
  const transport::peer_limits raw = fabric_.limits(peer{p.index});
  const protocol_limits limits = limits_in_force(raw, eager_override_);
  p.packet_bytes = limits.packet_bytes;
  p.eager_limit = limits.eager_limit;
  p.single_eager = std::min(limits.packet_bytes, limits.eager_limit);
  p.bulk = raw.bulk;
  if (p.host == nullptr) p.outgoing.left = budget_;  // first contact
  p.host = this;
  p.channel = fabric_.open_channel(peer{p.index});
}

void engine::send(operation& op, const envelope_route& way, const void* data, std::size_t bytes, tag label,
                  bool synchronous, const shape* form) {
  op.start();
  engine_peer& to = way.to;
  if (to.down != errc::success) return op.complete(to.down);
  const user_memory from{static_cast<std::byte*>(const_cast<void*>(data)), bytes, form};  // only read
  if (!polling_ && !synchronous &&
      send_at_once(way, bytes, label, [&](std::byte* at) { read_piece(from, 0, at, bytes); }))
    return op.complete();

  // A fabric finds out what it can do with a peer when it is asked after that peer has joined: what was read earlier
  // may be less than there is.
  if (bytes > to.single_eager) read_limits(to);

  ++counts_.messages_sent;
  counts_.bytes_sent += bytes;
  message& m = messages_.take();
  m.op = &op;
  op.runner = &m;
  m.data = from.data;
  m.form = form;
  m.size = bytes;
  m.with = &to;
  m.head = {.what = wire::kind::eager, .flags = synchronous ? std::uint8_t{wire::flag_bits::synchronous} : std::uint8_t{0}, .lane = 0, .reserved = 0, .context = {way.context},
            .source = way.self, .label = label.value};
  if (choose({to.packet_bytes, to.eager_limit}, bytes) == protocol::rendezvous) {
    if (to.leaving) return finish(m, errc::peer_left);
    ++counts_.rendezvous_sent;
    m.at = step::rts;
    m.method = form == nullptr ? to.bulk : transport::bulk_method::stream;
  } else {
    ++counts_.eager_sent;
    m.at = step::eager;
  }
  enqueue(to, m);
  if (!polling_ && &to.waiting.front() == &m) flush();
}

void engine::enqueue(engine_peer& p, message& m) {
  p.waiting.push_back(m);
  ++waiting_;
  if (!p.linked()) backlog_.push_back(p);
}

void engine::flush() {
  backlog_.for_each([&](engine_peer& p) {
    while (!p.waiting.empty()) {
      message& m = p.waiting.front();
      const step before = m.at;
      const post_result result = advance(m);
      if (result == post_result::again) {
        ++counts_.refused;
        break;
      }
      // The message left the FIFO if its work there is over (`advance` changed its step or released it).
      if (result == post_result::down) fail_waiting(p, errc::peer_failed);  // before the fabric says why
      if (p.waiting.empty()) break;
      if (!p.waiting.empty() && &p.waiting.front() == &m && m.live && m.at == before) {
        // A stream whose turn is over: to the back, so that others get theirs.
        m.unlink();
        p.waiting.push_back(m);
        break;
      }
    }
    if (p.waiting.empty()) p.unlink();
  });
}

/// Nothing can be sent to this peer any more: what waits for that ends.
void engine::fail_waiting(engine_peer& p, errc why) noexcept {
  while (!p.waiting.empty()) {
    --waiting_;
    message& m = p.waiting.pop_front();
    if (m.moving.pending())
      m.at = step::awaiting;  // offered: the fabric completes it when it reports the peer's end
    else
      finish(m, why);
  }
}

bool engine::send_in_turn(const envelope_route& way, const user_memory& data, tag label) {
  engine_peer& to = way.to;
  const std::size_t bytes = data.bytes;
  if (bytes > to.single_eager || !to.waiting.empty() || !to.outgoing.covers(bytes) || to.down != errc::success)
    return false;
  const transport::envelope head = wire::pack(wire::kind::eager, way.context, way.self, label.value);
  const post_result result =
      fabric_.send(peer{to.index}, head, bytes, [&](std::byte* at) { read_piece(data, 0, at, bytes); });
  if (result != post_result::done) return false;
  to.outgoing.spend(bytes);
  ++counts_.messages_sent;
  ++counts_.eager_sent;
  counts_.bytes_sent += bytes;
  return true;
}

bool engine::may_keep(const engine_peer& to, std::size_t bytes) const noexcept {
  return bytes <= to.single_eager && packed_size(bytes) <= packed_bytes && to.outgoing.covers(bytes) &&
         to.down == errc::success;
}

void engine::keep(const envelope_route& way, const user_memory& data, tag label) {
  engine_peer& to = way.to;
  const std::size_t bytes = data.bytes;
  message* block = nullptr;
  if (!to.waiting.empty()) {
    message& last = to.waiting.back();
    if (last.at == step::packed && packed_bytes - last.size >= packed_size(bytes)) block = &last;
  }
  if (block == nullptr) {
    block = &messages_.take();
    block->data = blocks_.take(packed_bytes);
    block->with = &to;
    block->at = step::packed;
    enqueue(to, *block);
  }
  const packed_record record{wire::pack(wire::kind::eager, way.context, way.self, label.value), bytes};
  std::memcpy(block->data + block->size, &record, sizeof record);
  read_piece(data, 0, block->data + block->size + sizeof record, bytes);
  block->size += packed_size(bytes);
  kept_ += packed_size(bytes);
  to.outgoing.spend(bytes);
  ++counts_.messages_sent;
  ++counts_.eager_sent;
  ++counts_.kept;
  counts_.bytes_sent += bytes;
}

post_result engine::advance(message& m) {
  switch (m.at) {
    case step::eager: return advance_eager(m);
    case step::rts: return send_control(m, wire::kind::rts);
    case step::envelope: return send_control(m, wire::kind::envelope_only);
    case step::cts: return send_control(m, wire::kind::cts);
    case step::ack: return send_control(m, wire::kind::sync_ack);
    case step::fin:
    case step::refuse: return send_control(m, wire::kind::fin);
    case step::packed: return advance_packed(m);
    case step::put: return advance_put(m);
    case step::leave: {
      const post_result result = fabric_.send(peer{m.with->index}, wire::encode(m.head), 0, transport::noop_writer{});
      if (result != post_result::done) return result;
      m.unlink();
      --waiting_;
      finish(m, errc::success);
      return result;
    }
    case step::streaming: return advance_stream(m);
    case step::answer: return advance_answer(m);
    case step::one_sided:
    case step::asking: return advance_one_sided(m);
    case step::replying: return advance_reply(m);
    default: break;
  }
  base::check(false, "a message waits in a peer's queue with nothing to send");
  return post_result::done;
}

post_result engine::advance_eager(message& m) {
  engine_peer& to = *m.with;
  const peer p{to.index};
  const bool synchronous = (m.head.flags & wire::flag_bits::synchronous) != 0;
  const bool waits_for_match = synchronous || !to.outgoing.covers(m.size);
  if (m.moved == 0 && waits_for_match && to.leaving) {
    m.unlink();
    --waiting_;
    finish(m, errc::peer_left);
    return post_result::done;
  }
  if (m.moved == 0 && !to.outgoing.covers(m.size)) {
    ++counts_.over_budget;
    m.at = step::envelope;
    m.method = transport::bulk_method::stream;
    return send_control(m, wire::kind::envelope_only);
  }
  for (bool first = m.moved == 0;; first = false) {
    const bool whole = first && !synchronous && m.size <= to.packet_bytes;
    const std::size_t body = whole || !first ? 0 : sizeof(wire::eager_body);
    const std::size_t piece = std::min(m.size - m.moved, to.packet_bytes - body);
    wire::header head = m.head;
    head.what = whole ? wire::kind::eager : first ? wire::kind::eager_first : wire::kind::eager_more;
    const post_result result = fabric_.send(p, wire::encode(head), body + piece, [&](std::byte* at) {
      if (body != 0)
        at = wire::put(at, wire::eager_body{.total = m.size, .sender = synchronous ? m.self() : wire::handle{}});
      read_piece(m.memory(), m.moved, at, piece);
    });
    if (result != post_result::done) return result;
    if (first) to.outgoing.spend(m.size);
    m.moved += piece;
    if (m.moved == m.size) break;
  }
  m.unlink();
  --waiting_;
  if (synchronous && !m.acknowledged)
    m.at = step::unacknowledged;
  else
    finish(m, errc::success);
  return post_result::done;
}

post_result engine::advance_packed(message& m) {
  const peer p{m.with->index};
  while (m.moved < m.size) {
    packed_record record;
    std::memcpy(&record, m.data + m.moved, sizeof record);
    const std::byte* from = m.data + m.moved + sizeof record;
    const auto bytes = static_cast<std::size_t>(record.size);
    const post_result result =
        fabric_.send(p, record.head, bytes, [&](std::byte* at) { base::copy_bytes(at, from, bytes); });
    if (result != post_result::done) return result;
    m.moved += packed_size(bytes);
    kept_ -= packed_size(bytes);
  }
  m.unlink();
  --waiting_;
  finish(m, errc::success);
  return post_result::done;
}

post_result engine::advance_stream(message& m) {
  engine_peer& to = *m.with;
  for (int i = 0; i < pieces_per_turn; ++i) {
    const std::size_t piece = std::min(m.size - m.moved, to.packet_bytes - sizeof(wire::data_body));
    wire::header head = m.head;
    head.what = wire::kind::data;
    const post_result result =
        fabric_.send(peer{to.index}, wire::encode(head), sizeof(wire::data_body) + piece, [&](std::byte* at) {
          at = wire::put(at, wire::data_body{.receiver = m.remote, .offset = m.moved});
          read_piece(m.memory(), m.moved, at, piece);
        });
    if (result != post_result::done) return result;
    m.moved += piece;
    if (m.moved == m.size) {
      m.unlink();
      --waiting_;
      finish(m, errc::success);
      return post_result::done;
    }
  }
  return post_result::done;
}

}  // namespace verbena::runtime
