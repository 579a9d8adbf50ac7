// The receiver's slow paths: finding and following rings, which of them are hot, deaths, going to sleep.
#include "transport/shm/shm_fabric.hpp"

#include <algorithm>

namespace verbena::transport::shm {

bool shm_fabric::find_ring(pair_state& p) noexcept {
  if (p.in.lines != 0) return true;
  if (p.bell == nullptr || p.state == health::buried || p.state == health::corrupt) return false;
  // acquire: pairs with the store in make_room. The value itself is not believed: the place is known.
  if (p.in_slot->ring.load(std::memory_order_acquire) == 0) return false;
  p.in.open(base_ + where_.first_ring(p.local_index, self_), first_shape);
  return true;
}

/// Goes over to the ring that a `moved` line announces. False: no honest sender wrote it.
bool shm_fabric::follow(pair_state& p, const ring_line& line) noexcept {
  std::uint64_t offset;
  std::memcpy(&offset, line.payload, sizeof offset);
  if (p.in_grown || where_.grown.lines == 0 || offset != where_.grown_ring(p.local_index, self_))
    return false;
  p.in.open(base_ + offset, where_.grown);
  p.in_grown = true;
  return true;
}

void shm_fabric::warm(pair_state& p) {
  if (p.hot) return;
  if (p.lingering) {
    p.lingering = false;
    std::erase(lingering_, &p);
  }
  if (hot_count_ == hot_rings) demote(*hot_[hot_count_ - 1]);
  p.hot = true;
  p.cold_finds = 0;
  // relaxed: read too late it costs the sender a needless bit
  p.in_slot->hot.store(1, std::memory_order_relaxed);
  hot_[hot_count_++] = &p;
}

void shm_fabric::demote(pair_state& p) {
  p.in_slot->hot.store(0, std::memory_order_relaxed);  // read too late: we keep looking, see announce()
  std::uint32_t at = 0;
  while (hot_[at] != &p) ++at;
  std::copy(hot_.begin() + at + 1, hot_.begin() + hot_count_, hot_.begin() + at);
  --hot_count_;
  p.hot = false;
  p.lingering = true;
  p.linger_until = 0;  // counts from the first look
  lingering_.push_back(&p);
}

/// Takes a peer out of everything polls look at; nothing can be sent to it any more.
void shm_fabric::forget(pair_state& p) noexcept {
  if (p.hot) demote(p);
  if (p.lingering) {
    p.lingering = false;
    std::erase(lingering_, &p);
  }
  p.in = {};
  p.in.at = &no_line;
  p.in.expect = never_expected;
  p.out.close();
}

void shm_fabric::read_news() {
  news_seen_ = page_.header().news.load(std::memory_order_acquire);  // pairs with announce: states before it
  const auto ranks = page_.local_ranks();
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    if (i == self_ || ended_[i] || !known_[i]) continue;
    const auto state = page_.record(ranks[i]).state.load(std::memory_order_acquire);
    if (state != base::rank_state::left && state != base::rank_state::failed) continue;
    pair_state& p = *meet(peer{ranks[i]});
    ended_[i] = true;
    if (p.state != health::well) continue;
    p.out.close();  // the warm path asks `state` only when there is no room
    p.state = state == base::rank_state::failed ? health::failed : health::left;
    dying_.push_back(&p);
  }
}

bool shm_fabric::arm() noexcept {
  auto ready = [](const pair_state* p) { return p->in.ready(); };
  if (page_.header().news.load(std::memory_order_relaxed) != news_seen_ || !dying_.empty() ||
      std::any_of(lingering_.begin(), lingering_.end(), ready)) {
    hurry();
    return false;
  }
  if (!failures_.empty() || transfers_.work_waits()) return false;
  for (std::uint32_t word = 0; word < cold_words_; ++word)
    if (cold_[word].load(std::memory_order_relaxed) != 0) return false;
  return std::none_of(hot_.begin(), hot_.begin() + hot_count_, ready);
}

}  // namespace verbena::transport::shm
