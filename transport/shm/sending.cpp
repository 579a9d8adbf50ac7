// The sender's slow paths: first contact, a full ring, growth, cold receivers, one-sided access.
#include "transport/shm/shm_fabric.hpp"

namespace verbena::transport::shm {
namespace {

constexpr std::uint32_t full_events_to_grow = 2;
constexpr std::uint32_t rounds_to_grow = 32;

bool fits(const ring_sender& out, std::size_t size) noexcept {
  return !out.full() &&
         (size <= inline_payload || out.data_cost(static_cast<std::uint32_t>(size)) <= out.data_room);
}

}  // namespace

bool shm_fabric::make_room(pair_state& p, std::size_t size) {
  base::check(size <= where_.packet_bytes(), "shm: a packet larger than packet_bytes");
  ring_sender& out = p.out;
  if (out.lines == 0) {
    const std::uint64_t offset = where_.first_ring(self_, p.local_index);
    out.open(base_ + offset, first_shape);
    p.out_slot->ring.store(offset, std::memory_order_release);  // once; its head is filled
  }
  if (fits(out, size)) return true;
  const bool gained = out.refresh();
  if (!p.out_grown && where_.grown.lines != 0) {
    if (gained) {
      ++p.rounds;
      p.found_full = false;
    }
    // Full although the receiver has read on since it was last found full.
    if (!fits(out, size) && !p.found_full) {
      ++p.full_events;
      p.found_full = true;
    }
    // Each round fetches a line the receiver wrote: a pair that makes many gets a ring where they are rare.
    if (size > first_shape.largest_payload() || p.full_events == full_events_to_grow ||
        p.rounds == rounds_to_grow)
      grow(p);
  }
  const bool found = fits(out, size);
  // A hint to whoever reports room; read too late, this side tries again by itself.
  std::atomic<std::uint32_t>& wanted = out.block().wanted;
  if ((wanted.load(std::memory_order_relaxed) == 0) != found)
    wanted.store(found ? 0 : 1, std::memory_order_relaxed);
  return found;
}

/// Announces the larger ring in the line that is kept back for it; the packet that follows calls the
/// receiver.
void shm_fabric::grow(pair_state& p) {
  const std::uint64_t offset = where_.grown_ring(self_, p.local_index);
  write_mark(p, moved, offset);
  p.out.open(base_ + offset, where_.grown);
  p.out_grown = true;
}

void shm_fabric::write_mark(pair_state& p, std::uint32_t mark, std::uint64_t word) noexcept {
  ring_line& line = *p.out.at;
  line.size = mark;
  line.head = {};
  std::memcpy(line.payload, &word, sizeof word);
  p.out.publish();
}

void shm_fabric::call_cold(pair_state& p) noexcept {
  // seq_cst: on x86 a full fence, so the line is visible before the bit and before `sleeping` is read
  p.cold_word->fetch_or(p.cold_bit, std::memory_order_seq_cst);
  if (p.bell->sleeping.load(std::memory_order_relaxed) != 0) base::ring(*p.bell);
}

post_result shm_fabric::fail(operation& op, errc why) {
  op.start();
  op.result.error = why;
  failures_.push_back(op);
  return post_result::pending;
}

std::size_t shm_fabric::complete_failures() noexcept {
  std::size_t events = 0;
  for (; !failures_.empty(); ++events) {
    operation& op = failures_.pop_front();
    op.complete(op.result.error);
  }
  return events;
}

namespace {

errc access_error(int error) noexcept {
  return error == ESRCH ? errc::peer_failed : error == EFAULT ? errc::access_denied : errc::system;
}

}  // namespace

/// Memory of a peer that lies in the segment (verbena::memory()) is mapped here, too: no system call is needed. What the
/// peer says of itself is checked; null: it lies elsewhere.
std::byte* shm_fabric::direct(const pair_state& p, std::uint64_t address, std::uint64_t bytes) const noexcept {
  const auto& card = reinterpret_cast<const rank_card*>(base_ + where_.at.cards)[p.local_index];
  if (card.joined.load(std::memory_order_acquire) == 0) return nullptr;  // acquire: the card is filled
  const std::uint64_t offset = address - card.segment_address;  // wraps to beyond the end if it lies below
  const std::uint64_t end = page_.header().segment_bytes;
  return offset <= end && bytes <= end - offset ? base_ + offset : nullptr;
}

post_result shm_fabric::put(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            operation& op) {
  pair_state* p = meet(to);
  if (p == nullptr || !p->reachable()) return post_result::down;
  if (!region_table::allows(base_, where_, p->local_index, key, offset, local.size))
    return prove(*p).outcome == proof::proven ? fail(op, errc::access_denied) : post_result::down;
  if (std::byte* at = direct(*p, key.address + offset, local.size)) {
    if (local.size != 0) std::memcpy(at, local.data, local.size);
    return post_result::done;
  }
  if (prove(*p).outcome != proof::proven) return post_result::down;
  const int error = write_peer(p->pid, local.data, key.address + offset, local.size);
  return error == 0 ? post_result::done : fail(op, access_error(error));
}

post_result shm_fabric::get(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            operation& op) {
  pair_state* p = meet(to);
  if (p == nullptr || !p->reachable()) return post_result::down;
  if (!region_table::allows(base_, where_, p->local_index, key, offset, local.size))
    return prove(*p).outcome == proof::proven ? fail(op, errc::access_denied) : post_result::down;
  if (const std::byte* at = direct(*p, key.address + offset, local.size)) {
    if (local.size != 0) std::memcpy(local.data, at, local.size);
    return post_result::done;
  }
  if (prove(*p).outcome != proof::proven) return post_result::down;
  const int error = read_peer(p->pid, local.data, key.address + offset, local.size);
  return error == 0 ? post_result::done : fail(op, access_error(error));
}

template <class Change>
post_result shm_fabric::update(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op,
                               Change&& change) {
  pair_state* p = meet(to);
  if (p == nullptr || !p->reachable()) return post_result::down;
  // Whom this is not for (a wrong key, other memory) is answered by the peer itself.
  if (!region_table::allows(base_, where_, p->local_index, key, offset, sizeof(std::uint64_t)))
    return post_result::down;
  std::byte* at = direct(*p, key.address + offset, sizeof(std::uint64_t));
  if (at == nullptr) return post_result::down;
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0 || local.size < sizeof(std::uint64_t))
    return fail(op, errc::invalid_argument);
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
  std::uint64_t old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(old, change(old), std::memory_order_acq_rel)) {
  }
  std::memcpy(local.data, &old, sizeof old);
  return post_result::done;
}

post_result shm_fabric::fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                                  std::uint64_t word, operation& op) {
  return update(to, local, key, offset, op, [&](std::uint64_t old) { return old + word; });
}

post_result shm_fabric::compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                                     std::uint64_t expected, std::uint64_t desired, operation& op) {
  return update(to, local, key, offset, op,
                [&](std::uint64_t old) { return old == expected ? desired : old; });
}

post_result shm_fabric::put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                                      std::uint64_t word, operation& op) {
  pair_state* p = meet(to);
  if (p == nullptr || !p->reachable()) return post_result::down;
  if (p->out.full() && !make_room(*p, 0)) return post_result::again;  // before anything is written
  const post_result written = put(to, local, key, offset, op);
  if (written != post_result::done) return written;
  // The copy was made by this processor in program order before the line's release store.
  write_mark(*p, flag_mark, word);
  announce(*p);
  return post_result::done;
}

}  // namespace verbena::transport::shm
