#include "transport/shm/shm_fabric.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>

namespace verbena::transport::shm {
namespace {

places find_places(const base::job_page& page) {
  const auto& header = page.header();
  const places where = make_places(make_layout(header.local_size, header.shm_offset, header.segment_bytes));
  if (where.heap_bytes == 0)
    throw error(
        errc::out_of_memory,
        fmt::format("the node's shared segment of {} bytes is too small for {} ranks; raise its bytes "
                    "per rank",
                    header.segment_bytes, header.local_size));
  return where;
}

}  // namespace

shm_fabric::shm_fabric(const base::job_page& page, std::span<std::byte> segment, std::uint32_t local_index,
                       options how)
    : page_(page),
      base_(segment.data()),
      self_(local_index),
      how_(how),
      where_(find_places(page)),
      pairs_(page.header().job_size),
      cold_words_((where_.at.local_size + 63) / 64),
      cold_(reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + where_.at.cold_bits) +
            std::size_t{local_index} * where_.at.cold_words),
      transfers_(base_, where_, local_index),
      known_(where_.at.local_size),
      ended_(where_.at.local_size),
      regions_(base_, where_, local_index),
      heap_(std::make_unique<heap>(base_, where_.at.arena(local_index) + where_.heap, where_.heap_bytes)),
      trial_value_(std::make_unique<std::uint64_t>()) {
  base::check(page.header().segment_bytes <= segment.size(), "the segment is mapped shorter than it is");
  auto& card = reinterpret_cast<rank_card*>(base_ + where_.at.cards)[self_];
  // What the first one left in rings and counters would be taken for this one's.
  if (card.joined.load(std::memory_order_relaxed) != 0)
    throw error(errc::invalid_argument,
                fmt::format("rank {} has joined this job already: one context is all that a rank can make, once",
                            page.local_ranks()[self_]));
  permit_peers();
  if (::getrandom(trial_value_.get(), sizeof *trial_value_, 0) != sizeof *trial_value_)
    *trial_value_ = static_cast<std::uint64_t>(base::steady_now()) ^ reinterpret_cast<std::uint64_t>(this);
  card.pid = static_cast<std::uint32_t>(::getpid());
  card.trial_address = reinterpret_cast<std::uint64_t>(trial_value_.get());
  card.trial_value = *trial_value_;
  card.segment_address = reinterpret_cast<std::uint64_t>(base_);
  card.joined.store(1, std::memory_order_release);  // last: the rest is filled
}

shm_fabric::~shm_fabric() {
  auto& card = reinterpret_cast<rank_card*>(base_ + where_.at.cards)[self_];
  card.joined.store(2, std::memory_order_relaxed);  // the trial value goes; nobody tries from now on
}

pair_state* shm_fabric::meet(peer to) const {
  const auto ranks = page_.local_ranks();
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), to.index);
  if (found == ranks.end() || *found != to.index) return nullptr;
  const auto other = static_cast<std::uint32_t>(found - ranks.begin());
  if (other == self_) return nullptr;
  pair_state& p = pairs_.at(to);
  if (p.bell != nullptr) return &p;
  auto* slots = reinterpret_cast<pair_slot*>(base_ + where_.at.pairs);
  p.who = to;
  p.local_index = other;
  p.out_slot = &slots[std::size_t{other} * where_.at.local_size + self_];
  p.out_hot = &p.out_slot->hot;
  p.in_slot = &slots[std::size_t{self_} * where_.at.local_size + other];
  p.cold_word = reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + where_.at.cold_bits) +
                std::size_t{other} * where_.at.cold_words + self_ / 64;
  p.cold_bit = 1ULL << (self_ % 64);
  p.bell = &page_.bell(other);
  if (!how_.single_copy) p.trial = {proof::disabled, 0};
  know(other);
  return &p;
}

/// From here on its death will be reported; it may have been in the news before.
void shm_fabric::know(std::uint32_t other) const {
  if (known_[other]) return;
  known_[other] = true;
  if (news_seen_ != 0) news_seen_ = page_.header().news.load(std::memory_order_relaxed) - 1;
}

const trial_result& shm_fabric::prove(pair_state& p) const {
  if (p.trial.outcome == proof::untried) {
    const auto& card = reinterpret_cast<const rank_card*>(base_ + where_.at.cards)[p.local_index];
    p.trial = try_peer(card);
    p.pid = static_cast<int>(card.pid);
  }
  return p.trial;
}

bool shm_fabric::attach(peer to, std::span<const std::byte>) {
  const auto ranks = page_.local_ranks();
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), to.index);
  if (found == ranks.end() || *found != to.index) return false;
  const auto other = static_cast<std::size_t>(found - ranks.begin());
  if (other == self_) return false;
  know(static_cast<std::uint32_t>(other));  // the rest is made on first contact
  return true;
}

bool shm_fabric::has_joined(peer to) const {
  const pair_state* p = meet(to);
  if (p == nullptr || p->trial.outcome != proof::untried) return true;  // nothing is open
  const auto& card = reinterpret_cast<const rank_card*>(base_ + where_.at.cards)[p->local_index];
  return card.joined.load(std::memory_order_acquire) == 1;  // pairs with the store of a filled card
}

std::string shm_fabric::explain(peer to) const {
  const auto ranks = page_.local_ranks();
  if (!std::binary_search(ranks.begin(), ranks.end(), to.index))
    return fmt::format("shm: rank {} is not on this node", to.index);
  pair_state* p = meet(to);
  if (p == nullptr) return fmt::format("shm: rank {} is this process", to.index);
  const bool left = p->state == health::left || p->end == errc::peer_left;
  if (p->state == health::corrupt) return fmt::format("shm: rank {} wrote a packet that cannot be", to.index);
  if (p->state != health::well)
    return fmt::format("shm: rank {} has {}", to.index, left ? "left the job" : "failed");
  return fmt::format("shm: same segment; {}", describe(prove(*p)));
}

peer_limits shm_fabric::limits(peer to) const {
  peer_limits l{.packet_bytes = where_.packet_bytes(),
                .inline_bytes = inline_payload,
                .eager_bytes = 64 * 1024,
                .bulk = bulk_method::stream,
                .native_put = false,
                .native_atomics = false,
                .latency_us = 0.1F,
                .bandwidth_gbs = 12};
  pair_state* p = pairs_.find(to);
  if (p == nullptr || p->bell == nullptr) p = meet(to);
  if (p == nullptr || prove(*p).outcome != proof::proven) return l;
  l.bulk = bulk_method::together;
  l.native_put = true;
  l.eager_bytes = 16 * 1024;  // above it one copy by both ends is faster than two overlapping ones
  l.bandwidth_gbs = 25;
  return l;
}

post_result shm_fabric::offer(peer to, buffer local, remote_key& ticket, operation& op) {
  pair_state* p = meet(to);
  if (p == nullptr || !p->reachable() || prove(*p).outcome != proof::proven) return post_result::down;
  return transfers_.offer(*p, local, ticket, op);
}

post_result shm_fabric::accept(peer from, buffer local, const remote_key& ticket, operation& op) {
  pair_state* p = meet(from);
  if (p == nullptr || !p->reachable()) return post_result::down;
  prove(*p);  // if that fails the sender copies alone
  return transfers_.accept(*p, local, ticket, op);
}

bool shm_fabric::withdraw(peer, const remote_key& ticket) noexcept {
  return transfers_.withdraw(ticket);
}

shm_fabric::region shm_fabric::register_memory(buffer local) {
  const remote_key key = regions_.add(local);
  return key.handle == 0 ? region{} : region{regions_, key};
}

std::span<std::byte> shm_fabric::world_block() const noexcept {
  return {base_ + where_.at.world_block, where_.at.world_block_bytes};
}

}  // namespace verbena::transport::shm
