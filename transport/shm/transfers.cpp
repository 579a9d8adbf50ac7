#include "transport/shm/transfers.hpp"

#include <algorithm>
#include <cerrno>

namespace verbena::transport::shm {
namespace {

constexpr std::uint64_t smallest_chunk = 16 << 10;
constexpr std::uint64_t largest_chunk = 256 << 10;
constexpr std::size_t looked_at = 4;  ///< oldest, and others, that one poll looks at: it stays bounded

/// Two chunks while they are small, so that both ends share the message; larger messages in more of them, so
/// that an end that comes late still finds some. Below 16 KiB the system call (about 1 us) costs more than
/// sharing gains.
std::uint32_t chunk_for(std::uint64_t bytes) noexcept {
  const std::uint64_t half = (bytes / 2 + page_bytes - 1) / page_bytes * page_bytes;
  return static_cast<std::uint32_t>(std::clamp(half, smallest_chunk, largest_chunk));
}

errc to_errc(std::uint32_t error) noexcept {
  if (error == 0) return errc::success;
  return error == ESRCH ? errc::peer_failed : errc::system;
}

}  // namespace

transfers::transfers(std::byte* base, const places& where, std::uint32_t local_index)
    : base_(base), where_(where), local_index_(local_index) {}

transfer* transfers::take_descriptor() {
  // The oldest few first, whose memory is warm. Receivers that compute may hold on to theirs for long, so once there are
  // no fresh ones all are looked at: a peer must not be refused because of another one.
  const bool fresh = never_used_ != transfer_slots;
  const std::size_t considered = fresh ? std::min(closing_.size(), looked_at) : closing_.size();
  for (std::size_t i = 0; i < considered; ++i)
    if (closing_[i]->state.load(std::memory_order_acquire) == idle) {  // the receiver's last look came before
      transfer* found = closing_[i];
      closing_.erase(closing_.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
  if (!fresh) return nullptr;
  std::byte* first = base_ + where_.at.arena(local_index_) + where_.transfers;
  return reinterpret_cast<transfer*>(first) + never_used_++;
}

post_result transfers::offer(pair_state& to, buffer local, remote_key& ticket, operation& op) {
  transfer* shared = take_descriptor();
  if (shared == nullptr) return post_result::again;
  const std::uint32_t generation = shared->generation.load(std::memory_order_relaxed) + 1;
  shared->generation.store(generation, std::memory_order_relaxed);  // published by the state below
  shared->bytes = local.size;
  shared->source_address = reinterpret_cast<std::uint64_t>(local.data);
  shared->chunk_bytes = chunk_for(local.size);
  shared->receiver = to.local_index;
  shared->claimed.store(0, std::memory_order_relaxed);
  shared->finished.store(0, std::memory_order_relaxed);
  shared->failed.store(0, std::memory_order_relaxed);
  shared->state.store(offered, std::memory_order_release);  // pairs with accept
  ticket = {};
  ticket.address = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(shared) - base_);
  ticket.size = local.size;
  ticket.handle = generation;
  op.start();
  outgoing_.push_back({shared, &op, &to, local.data, local.size, 0, shared->chunk_bytes});
  return post_result::pending;
}

post_result transfers::accept(pair_state& from, buffer local, const remote_key& ticket, operation& op) {
  const std::uint64_t first = where_.at.arena(from.local_index) + where_.transfers;
  const std::uint64_t inside = ticket.address - first;
  if (ticket.address < first || inside >= transfer_slots * sizeof(transfer) || inside % sizeof(transfer) != 0)
    return post_result::down;
  auto& shared = *reinterpret_cast<transfer*>(base_ + ticket.address);
  // The ticket came in a packet behind the offer, so an honest one is visible whole.
  if (shared.state.load(std::memory_order_acquire) != offered ||
      shared.generation.load(std::memory_order_relaxed) != ticket.handle || shared.receiver != local_index_ ||
      shared.bytes != local.size || ticket.size != local.size)
    return post_result::down;
  const std::uint32_t chunk_bytes = shared.chunk_bytes;
  if (chunk_bytes < page_bytes) return post_result::down;
  const std::uint64_t source = shared.source_address;
  shared.target_address = reinterpret_cast<std::uint64_t>(local.data);
  std::uint32_t expected = offered;
  // release: the sender that sees `accepted` sees the target; fails if it is withdrawn at this moment
  if (!shared.state.compare_exchange_strong(expected, accepted, std::memory_order_acq_rel))
    return post_result::down;
  op.start();
  incoming_.push_back({&shared, &op, &from, local.data, local.size, source, chunk_bytes});
  // A sender that must copy alone is called if it sleeps; otherwise its help is not worth a system call. The exchange
  // above is a full fence on x86; elsewhere the sleeper's first, short sleep covers us (runtime/waiter.hpp).
  if (!can_copy(incoming_.back(), side::receiver) && from.bell->sleeping.load(std::memory_order_relaxed) != 0)
    base::ring(*from.bell);
  return post_result::pending;
}

bool transfers::withdraw(const remote_key& ticket) noexcept {
  auto found = std::find_if(outgoing_.begin(), outgoing_.end(), [&](const part& s) {
    return ticket.address == static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(s.shared) - base_);
  });
  if (found == outgoing_.end() || found->shared->generation.load(std::memory_order_relaxed) != ticket.handle)
    return false;
  std::uint32_t expected = offered;
  if (!found->shared->state.compare_exchange_strong(expected, idle, std::memory_order_acq_rel)) return false;
  closing_.push_back(found->shared);
  outgoing_.erase(found);
  return true;
}

transfers::chunk transfers::claim(const part& p, side mine) noexcept {
  const std::uint64_t total = (p.bytes + p.chunk_bytes - 1) / p.chunk_bytes;
  std::uint64_t word = p.shared->claimed.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t front = word & 0xffffffffU;
    const std::uint64_t back = word >> 32;
    if (front + back >= total) return {0, 0};
    const std::uint64_t next = mine == side::receiver ? word + 1 : word + (1ULL << 32);
    // relaxed: a claim only says who copies; what is copied is ordered by `state` and `finished`
    if (!p.shared->claimed.compare_exchange_weak(word, next, std::memory_order_relaxed)) continue;
    const std::uint64_t offset = (mine == side::receiver ? front : total - 1 - back) * p.chunk_bytes;
    return {offset, std::min<std::uint64_t>(p.chunk_bytes, p.bytes - offset)};
  }
}

bool transfers::chunks_left(const part& p) noexcept {
  const std::uint64_t word = p.shared->claimed.load(std::memory_order_relaxed);
  return (word & 0xffffffffU) + (word >> 32) < (p.bytes + p.chunk_bytes - 1) / p.chunk_bytes;
}

bool transfers::can_copy(const part& p, side mine) noexcept {
  if (mine == side::sender)  // acquire, pairs with accept: the target address
    return p.shared->state.load(std::memory_order_acquire) == accepted;
  // A receiver whose own trial failed leaves all of it to the sender, who has proven that it can.
  return p.other->trial.outcome == proof::proven;
}

void transfers::account(const part& p, std::uint64_t bytes, int error) noexcept {
  if (error != 0) p.shared->failed.store(static_cast<std::uint32_t>(error), std::memory_order_relaxed);
  // acq_rel: whoever sees the sum complete sees every copy, and `failed`
  if (p.shared->finished.fetch_add(bytes, std::memory_order_acq_rel) + bytes < p.bytes) return;
  // The other end may sleep by now. The addition is a full fence on x86; elsewhere the sleeper's first, short
  // sleep covers us as it does for any message.
  if (p.other->bell->sleeping.load(std::memory_order_relaxed) != 0) base::ring(*p.other->bell);
}

bool transfers::copy_chunk(const part& p, side mine) noexcept {
  if (!can_copy(p, mine)) return false;
  const chunk c = claim(p, mine);
  if (c.bytes == 0) return false;
  // After a failure at either end the rest is only claimed and given up, so that both ends complete.
  int error = static_cast<int>(p.shared->failed.load(std::memory_order_relaxed));
  if (error == 0 && mine == side::receiver)
    error = read_peer(p.other->pid, p.data + c.offset, p.source_address + c.offset, c.bytes);
  else if (error == 0)
    error = write_peer(p.other->pid, p.data + c.offset, p.shared->target_address + c.offset, c.bytes);
  account(p, c.bytes, error);
  return true;
}

std::size_t transfers::advance(part_list& list, side mine, std::size_t& cursor) noexcept {
  std::size_t steps = 0;
  bool copied = false;
  // Looks at the oldest few, which move first, and at a few others in turn: the peer may accept in any order.
  auto look_at = [&](std::size_t i) {  // true: it is done and out of the list
    if (!copied && copy_chunk(list[i], mine)) {
      copied = true;
      ++steps;
    }
    if (list[i].shared->finished.load(std::memory_order_acquire) < list[i].bytes)
      return false;  // pairs with account
    const part ended = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    const errc error = to_errc(ended.shared->failed.load(std::memory_order_relaxed));
    if (mine == side::receiver)
      ended.shared->state.store(idle, std::memory_order_release);  // the last look at the descriptor
    else
      closing_.push_back(ended.shared);
    ended.op->result.bytes = error == errc::success ? ended.bytes : 0;
    ended.op->result.sent_bytes = ended.bytes;
    ++steps;
    ended.op->complete(error);  // last: its hook may post
    return true;
  };
  for (std::size_t i = 0, seen = 0; i < list.size() && seen < looked_at; ++seen)
    if (!look_at(i)) ++i;
  if (list.size() <= looked_at) return steps;
  for (std::size_t i = 0; i < looked_at && !list.empty(); ++i) look_at(++cursor % list.size());
  return steps;
}

std::size_t transfers::abandon(part_list& list, const pair_state& peer, side mine, errc why) noexcept {
  const bool dead = why != errc::malformed;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < list.size();) {
    if (list[i].other != &peer) {
      ++i;
      continue;
    }
    const part p = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    // What was copied whole before is not undone by the peer's end.
    const bool whole = p.shared->finished.load(std::memory_order_acquire) >= p.bytes;  // pairs with account
    const errc error = whole ? to_errc(p.shared->failed.load(std::memory_order_relaxed)) : why;
    p.op->result.bytes = error == errc::success ? p.bytes : 0;
    p.op->result.sent_bytes = p.bytes;
    if (mine == side::sender && dead) {  // a live peer may still look at it: then the slot is given up
      p.shared->state.store(idle, std::memory_order_relaxed);
      closing_.push_back(p.shared);
    }
    ++ended;
    p.op->complete(error);  // last: its hook may post
  }
  return ended;
}

bool transfers::work_waits() const noexcept {
  auto any = [](const part_list& list, side mine) {
    return std::any_of(list.begin(), list.end(), [&](const part& p) {
      return p.shared->finished.load(std::memory_order_acquire) >= p.bytes ||
             (can_copy(p, mine) && chunks_left(p));
    });
  };
  return any(incoming_, side::receiver) || any(outgoing_, side::sender);
}

}  // namespace verbena::transport::shm
