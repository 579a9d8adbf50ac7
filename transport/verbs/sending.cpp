// Packets and control words on their way out.
#include "transport/verbs/endpoint.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace verbena::transport::verbs {
namespace {

constexpr std::uint32_t requests_for_words = 8;
constexpr std::int32_t tokens_for_words =
    16;  // the last ones are for control words: credit must not wait for credit

}  // namespace

std::byte* endpoint::prepare(peer to, std::size_t size, post_result& result) noexcept {
  base::check(size <= payload_bytes, "verbs: a packet larger than packet_bytes");
  link* const l = find(to);
  if (l == nullptr || !l->reachable()) {
    result = post_result::down;
    return nullptr;
  }
  slot_pool& pool = pool_for(sizeof(packet_head) + size);
  // A put that is not acknowledged may still be on its way, on a queue pair of its own.
  if (!l->up() || l->posted != l->sent || l->puts_held != 0 || l->sent - l->given_back >= l->window ||
      tokens_ <= tokens_for_words || l->packets.outstanding() + requests_for_words >= l->slots.size() ||
      !pool.any()) {
    result = post_result::again;
    return nullptr;
  }
  preparing_ = l;
  preparing_bytes_ = sizeof(packet_head) + size;
  preparing_slot_ = pool.take();
  return pool.at(preparing_slot_) + sizeof(packet_head);
}

void endpoint::commit(envelope head) noexcept {
  link& l = *preparing_;
  std::uint32_t sequence = ++l.sent;
  if (sequence == 0) sequence = 1;  // marks control words; the receiver counts by itself
  const packet_head first{{sequence, l.received}, head};
  std::byte* const data = pool_for(preparing_bytes_).at(preparing_slot_);
  std::memcpy(data, &first, sizeof first);
  l.kept_of(l.sent) = {preparing_slot_, static_cast<std::uint32_t>(preparing_bytes_)};
  post_packet(l, data, preparing_bytes_);
}

/// Room was checked. A device that refuses all the same is broken: the link goes down.
bool endpoint::post_packet(link& to, std::byte* data, std::size_t bytes) noexcept {
  const std::uint32_t number = to.packets.posted;
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(data);
  piece.length = static_cast<std::uint32_t>(bytes);
  piece.lkey = pool_for(bytes).key();
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = name(request::packet, to, number);
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  if (number % signal_every == signal_every - 1) wr.send_flags = IBV_SEND_SIGNALED;
  if (bytes <= inline_bytes_) wr.send_flags |= IBV_SEND_INLINE;
  if (ibv_post_send(to.packets.get(), &wr, &bad) != 0) {
    close(to, errc::link_down, "the device takes no more requests: " + device_.text());
    return false;
  }
  to.slots[number % to.slots.size()] = link::no_slot;
  ++to.packets.posted;
  --tokens_;
  ++to.posted;
  to.told = to.received;
  return true;
}

/// What the peer lacks after a break, in order, as room allows. False: some waits on.
bool endpoint::send_again(link& to) noexcept {
  while (to.up() && to.posted != to.sent) {
    if (tokens_ <= tokens_for_words || to.packets.outstanding() + requests_for_words >= to.slots.size())
      return false;
    const kept_packet& packet = to.kept_of(to.posted + 1);
    std::byte* const data = pool_for(packet.bytes).at(packet.slot);
    std::memcpy(data + offsetof(session_header, acknowledged), &to.received, sizeof to.received);
    if (!post_packet(to, data, packet.bytes)) return true;
  }
  return true;
}

/// The peer has given back the room of all packets up to `number`: they need not be kept.
void endpoint::given_back(link& of, std::uint32_t number) noexcept {
  while (of.given_back != number) {
    of.lived.was_of_use();
    const kept_packet& packet = of.kept_of(++of.given_back);
    pool_for(packet.bytes).give_back(packet.slot);
  }
}

/// A control word: always signalled, so that what is behind the last packet is known to have left. False: no room yet.
bool endpoint::say(link& to, const control& word) noexcept {
  if (!to.up() || tokens_ <= 0 || to.packets.outstanding() + 1 >= to.slots.size()) return false;
  std::byte data[sizeof(session_header) + sizeof(control)];
  const session_header session{0, to.received};
  std::memcpy(data, &session, sizeof session);
  std::memcpy(data + sizeof session, &word, sizeof word);
  const bool fits_inline = sizeof data <= inline_bytes_;
  if (!fits_inline && !small_.any()) return false;
  const std::uint32_t slot = fits_inline ? link::no_slot : small_.take();
  std::byte* const from = fits_inline ? data : small_.at(slot);
  if (!fits_inline) std::memcpy(from, data, sizeof data);
  const std::uint32_t number = to.packets.posted;
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(from);
  piece.length = sizeof data;
  piece.lkey = small_.key();
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = name(request::packet, to, number);
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (fits_inline) wr.send_flags |= IBV_SEND_INLINE;
  if (ibv_post_send(to.packets.get(), &wr, &bad) != 0) {
    if (!fits_inline) small_.give_back(slot);
    return false;
  }
  to.slots[number % to.slots.size()] = slot;
  ++to.packets.posted;
  --tokens_;
  to.told = to.received;
  to.flags_told = word.flags;
  return true;
}

/// Credit once half the lease is given back, and whatever else waits for room. False: some waits on.
bool endpoint::say_what_is_owed(link& to) noexcept {
  if (!to.up() || to.said_bye) return true;
  control word;
  word.flags = to.flags_received;
  if (to.owes_credit) {
    if (!say(to, word)) return false;
    to.owes_credit = false;
  }
  if (!send_again(to)) return false;
  if (!to.up()) return true;
  if (to.owes_opened) {
    word.what = control_kind::opened;
    word.number = to.serving ? to.serving.number() : 0;
    word.round = to.opened_round;
    if (!say(to, word)) return false;
    to.owes_opened = false;
  }
  if (to.owes_open) {
    word.what = control_kind::open;
    word.number = to.accesses.number();
    word.start = to.access_start;
    word.round = to.round;
    if (!say(to, word)) return false;
    to.owes_open = false;
  }
  const bool packets_due = to.received - to.told >= std::max(lease_ / 2, 1U);
  const bool flags_due = to.flags_received - to.flags_told >= 8;
  if (!packets_due && !flags_due) return true;
  word = {};
  word.flags = to.flags_received;
  return say(to, word);
}

/// Request `number` on the packets' queue pair is over, and so are all before it.
void endpoint::retire_packets(link& of, std::uint32_t number) noexcept {
  for (queue_pair& q = of.packets; q.retired != number + 1; ++q.retired) {
    if (q.outstanding() == 0) return;  // a completion of nothing
    std::uint32_t& slot = of.slots[q.retired % of.slots.size()];
    if (slot != link::no_slot) small_.give_back(slot);
    slot = link::no_slot;
    ++tokens_;
  }
}

}  // namespace verbena::transport::verbs
