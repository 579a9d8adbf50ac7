// The fabric between ranks of one node: rings in the shared segment for packets, cross-memory copies for
// large messages and one-sided access. The warm path of a small message is here and is inlined into the
// engine: it writes one cache line, reads two words that seldom change, and makes no system call, no fence
// and no locked instruction. Everything rare is in shm_fabric.cpp. It must not look into envelopes, and never
// sleeps.
//
// Getting the receiver's attention (every order argued where it is used):
//   hot       the receiver polls this ring by itself; the sender only looks at the word
//   cold      the sender sets its bit in the receiver's cold word after its message
//   sleeping  the sender rings the receiver's doorbell (runtime/waiter.hpp)
#pragma once

#include "transport/fabric.hpp"
#include "transport/shm/heap.hpp"
#include "transport/shm/pair.hpp"
#include "transport/shm/regions.hpp"
#include "transport/shm/transfers.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace verbena::transport::shm {

struct options {
  bool single_copy = true;  ///< false: large messages always stream through the rings
};

class shm_fabric {
 public:
  using region = shm::region;

  /// The caller owns the mapping `segment` of the whole segment and keeps it longer than this. Throws
  /// error{errc::out_of_memory} if the segment is too small to hold the areas.
  shm_fabric(const base::job_page& page, std::span<std::byte> segment, std::uint32_t local_index,
             options how = {});
  ~shm_fabric();
  shm_fabric(const shm_fabric&) = delete;
  shm_fabric& operator=(const shm_fabric&) = delete;

  std::span<const std::byte> address() const noexcept { return {}; }
  bool attach(peer to, std::span<const std::byte> address);
  std::string explain(peer to) const;
  bool has_joined(peer to) const;
  peer_limits limits(peer to) const;

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write);

  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op);
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op);
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op);
  /// Only on memory in the segment; otherwise down (limits().native_atomics): the engine does them by packets.
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset, std::uint64_t word,
                        operation& op);
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                           std::uint64_t expected, std::uint64_t desired, operation& op);
  region register_memory(buffer local);

  // fabric.hpp, sharing_fabric
  post_result offer(peer to, buffer local, remote_key& ticket, operation& op);
  post_result accept(peer from, buffer local, const remote_key& ticket, operation& op);
  bool withdraw(peer to, const remote_key& ticket) noexcept;

  template <class Sink>
  std::size_t poll(base::nanoseconds now, Sink& sink);
  /// Rings only: transfers, deaths and other peers need `poll` now and then.
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds now, Sink& sink);

  // The same as send and poll_from for who keeps at hand what leads to the peer (routed_fabric::channel).
  pair_state* channel(peer to) const { return meet(to); }
  template <class Writer>
  post_result send_on(pair_state& p, envelope head, std::size_t size, Writer&& write);
  template <class Take>
  next_packet take_next(pair_state& p, base::nanoseconds now, Take&& take);

  bool arm() noexcept;
  void disarm() noexcept {}

  /// Collective block of the world communicator: shared by all ranks of the node, zero at first.
  std::span<std::byte> world_block() const noexcept;
  /// Zero memory in this rank's arena, as an offset that every rank of the node can add to its base; 0:
  /// exhausted.
  std::uint64_t allocate(std::uint64_t bytes) { return heap_->allocate(bytes); }
  void free(std::uint64_t offset) noexcept { heap_->free(offset); }
  std::uint64_t offset_of(const void* at) const noexcept {
    const auto* byte = static_cast<const std::byte*>(at);
    const bool inside = std::less_equal<>{}(base_, byte) && std::less<>{}(byte, base_ + page_.header().segment_bytes);
    return inside ? static_cast<std::uint64_t>(byte - base_) : 0;
  }
  std::uint64_t room() const noexcept { return where_.heap_bytes - heap_->used(); }
  /// Where any rank's allocation lies for this process.
  std::span<std::byte> memory(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t end = page_.header().segment_bytes;
    base::check(offset <= end && bytes <= end - offset, "shared memory outside the segment is asked for");
    return {base_ + offset, bytes};
  }

 private:
  static constexpr std::size_t hot_rings = 8;
  static constexpr unsigned packets_per_look = 32;
  static constexpr unsigned finds_to_warm = 4;  ///< cold bits before a ring displaces a hot one
  static constexpr unsigned polls_per_housekeeping = 64;
  /// How long a demoted ring is still looked at, from the first look on (the clock may have been read long before). A sender that read hot == 1 just before makes its line
  /// visible within microseconds; the rest allows for a clock argument that is late.
  static constexpr base::nanoseconds linger = 4 * base::millisecond;

  // Sender's side (sending.cpp).
  pair_state* meet(peer to) const;
  const trial_result& prove(pair_state& p) const;
  void know(std::uint32_t other) const;
  bool make_room(pair_state& p, std::size_t size);
  void grow(pair_state& p);
  void call_cold(pair_state& p) noexcept;
  void announce(pair_state& p) noexcept;
  void write_mark(pair_state& p, std::uint32_t mark, std::uint64_t word) noexcept;
  post_result fail(operation& op, errc why);
  std::byte* direct(const pair_state& p, std::uint64_t address, std::uint64_t bytes) const noexcept;
  template <class Change>
  post_result update(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op,
                     Change&& change);

  // Receiver's side.
  template <class Sink>
  std::size_t drain(pair_state& p, Sink& sink, unsigned at_most);
  template <class Sink>
  std::size_t look_at_cold(std::size_t word, Sink& sink);
  template <class Sink>
  std::size_t keep_house(base::nanoseconds now, Sink& sink);
  template <class Sink>
  std::size_t bury(pair_state& p, errc why, Sink& sink);
  bool find_ring(pair_state& p) noexcept;
  bool follow(pair_state& p, const ring_line& line) noexcept;
  void warm(pair_state& p);
  void demote(pair_state& p);
  void forget(pair_state& p) noexcept;
  void read_news();
  void hurry() noexcept { ticks_ = polls_per_housekeeping - 1; }  ///< the next poll keeps house
  std::size_t complete_failures() noexcept;

  base::job_page page_;
  std::byte* base_;
  std::uint32_t self_;
  options how_;
  places where_;
  mutable pair_table pairs_;

  // What every poll reads.
  std::array<pair_state*, hot_rings> hot_{};  ///< about last used first
  std::uint32_t hot_count_ = 0;
  std::uint32_t cold_words_;  ///< of this rank that can have bits
  std::atomic<std::uint64_t>* cold_;
  std::uint32_t ticks_ = 0;
  transfers transfers_;
  base::intrusive_list<operation> failures_;  ///< to be completed with their error by the next poll

  std::vector<pair_state*> lingering_;
  std::vector<pair_state*> dying_;   ///< seen dead, ring not yet drained
  mutable std::vector<bool> known_;  ///< by local index: attached or met, its death will be reported
  std::vector<bool> ended_;          ///< by local index: its end was seen
  mutable std::uint32_t news_seen_ = 0;
  region_table regions_;
  std::unique_ptr<heap> heap_;
  std::unique_ptr<std::uint64_t> trial_value_;
};

template <class Writer>
inline post_result shm_fabric::send(peer to, envelope head, std::size_t size, Writer&& write) {
  pair_state* p = pairs_.find(to);
  if (p == nullptr || p->out.full()) [[unlikely]]
    p = meet(to);  // full is also whom we never met
  return p == nullptr ? post_result::down : send_on(*p, head, size, write);
}

template <class Writer>
[[gnu::always_inline]] inline post_result shm_fabric::send_on(pair_state& p, envelope head, std::size_t size,
                                                              Writer&& write) {
  if (p.out.full()) [[unlikely]] {
    if (!p.reachable()) return post_result::down;
    if (!make_room(p, size)) return post_result::again;
  }
  if (size <= inline_payload) {
    ring_line* line = p.out.at;
    line->size = static_cast<std::uint32_t>(size);
    line->head = head;
    write(line->payload);
    p.out.publish();
  } else {
    std::byte* data = p.out.take_data(static_cast<std::uint32_t>(size));
    if (data == nullptr) [[unlikely]] {
      if (!make_room(p, size)) return post_result::again;
      data = p.out.take_data(static_cast<std::uint32_t>(size));
    }
    ring_line* line = p.out.at;
    line->size = static_cast<std::uint32_t>(size);
    line->head = head;
    write(data);
    p.out.publish();
    p.out.prefetch_data(size);
  }
  announce(p);
  return post_result::done;
}

/// After a line is published. The compiler barrier keeps the loads behind the store in program order; the
/// processor may still make the loads first, by nanoseconds (microseconds at worst), never across an
/// interrupt, for an interrupted load that was not retired is made again. So:
///  hot       read as 1 although the receiver has just demoted the ring: it keeps looking for `linger`.
///            Read as 0 although it was just promoted: a needless bit.
///  sleeping  read as 0 although the receiver is going to sleep: runtime/waiter.hpp, phase one.
inline void shm_fabric::announce(pair_state& p) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (p.out_hot->load(std::memory_order_relaxed) == 0) [[unlikely]]
    return call_cold(p);
  if (p.bell->sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
    base::ring(*p.bell);
}

template <class Sink>
inline std::size_t shm_fabric::drain(pair_state& p, Sink& sink, unsigned at_most) {
  std::size_t events = 0;
  while (events < at_most && p.in.ready()) {
    const ring_line& line = *p.in.at;
    const std::uint32_t size = line.size;
    if (size <= inline_payload) [[likely]] {
      sink.on_packet(p.who, line.head, {line.payload, size});
    } else if (size < flag_mark) {
      const std::span<const std::byte> payload = p.in.take_data(size);
      if (payload.empty()) return events + bury(p, errc::malformed, sink);
      sink.on_packet(p.who, line.head, payload);
    } else if (size == flag_mark) {
      std::uint64_t word;
      std::memcpy(&word, line.payload, sizeof word);
      sink.on_flag(p.who, word);
    } else {
      if (!follow(p, line)) return events + bury(p, errc::malformed, sink);
      continue;
    }
    // A sender that has just set `wanted` unseen tries again by itself within a millisecond
    // (runtime/waiter.hpp).
    if (p.in.advance() && p.bell->sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
      base::ring(*p.bell);
    ++events;
  }
  return events;
}

template <class Sink>
inline std::size_t shm_fabric::poll(base::nanoseconds now, Sink& sink) {
  std::size_t events = 0;
  for (std::uint32_t i = 0; i < hot_count_; ++i) {
    pair_state& p = *hot_[i];
    if (!p.in.ready()) continue;
    events += drain(p, sink, packets_per_look);
    if (i > 0 && i < hot_count_) std::swap(hot_[i], hot_[i - 1]);  // drifts to the front with use
  }
  for (std::size_t word = 0; word < cold_words_; ++word)
    if (cold_[word].load(std::memory_order_relaxed) != 0) [[unlikely]]
      events += look_at_cold(word, sink);
  if (transfers_.busy()) events += transfers_.advance();
  if (!failures_.empty()) [[unlikely]]
    events += complete_failures();
  if (++ticks_ % polls_per_housekeeping == 0) [[unlikely]]
    events += keep_house(now, sink);
  return events;
}

template <class Sink>
inline std::size_t shm_fabric::poll_from(peer from, base::nanoseconds, Sink& sink) {
  pair_state* p = pairs_.find(from);
  if (p == nullptr) [[unlikely]]
    p = meet(from);
  if (p == nullptr) return 0;
  if (p->in.ready()) return drain(*p, sink, 1);  // who waits for one message wants no other first
  if (!p->hot) [[unlikely]] {
    if (p->bell == nullptr && meet(from) == nullptr) return 0;
    if (find_ring(*p)) warm(*p);  // somebody waits for this very peer
  }
  return 0;
}

template <class Take>
[[gnu::always_inline]] inline next_packet shm_fabric::take_next(pair_state& p, base::nanoseconds,
                                                                Take&& take) {
  if (!p.in.ready()) {
    if (!p.hot && find_ring(p)) [[unlikely]]
      warm(p);  // somebody waits for this very peer
    return next_packet::none;
  }
  const ring_line& line = *p.in.at;
  const std::uint32_t size = line.size;
  if (size > inline_payload) [[unlikely]] {
    if (size > p.in.data_bytes) return next_packet::other;  // a mark, or nonsense: poll decides
    if (!take(line.head, p.in.peek_data(size))) return next_packet::other;
    static_cast<void>(p.in.take_data(size));
  } else if (!take(line.head, std::span<const std::byte>(line.payload, size))) {
    return next_packet::other;
  }
  if (p.in.advance() && p.bell->sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
    base::ring(*p.bell);  // as in drain
  return next_packet::taken;
}

template <class Sink>
std::size_t shm_fabric::look_at_cold(std::size_t word, Sink& sink) {
  std::size_t events = 0;
  // acquire: pairs with call_cold; the messages the bits speak of, and new rings, are visible
  for (std::uint64_t bits = cold_[word].exchange(0, std::memory_order_acq_rel); bits != 0; bits &= bits - 1) {
    const std::size_t index = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    pair_state* p = index < where_.at.local_size ? meet(peer{page_.local_ranks()[index]}) : nullptr;
    if (p == nullptr || !find_ring(*p)) continue;  // a bit nobody honest sets
    if (hot_count_ < hot_rings || ++p->cold_finds >= finds_to_warm) warm(*p);
    events += drain(*p, sink, packets_per_look);
    if (!p->hot && p->in.ready()) cold_[word].fetch_or(bits & -bits, std::memory_order_relaxed);  // next poll
  }
  return events;
}

template <class Sink>
std::size_t shm_fabric::keep_house(base::nanoseconds now, Sink& sink) {
  std::size_t events = 0;
  for (std::size_t i = 0; i < lingering_.size();) {
    pair_state& p = *lingering_[i];
    if (p.linger_until == 0) p.linger_until = now + linger;
    const bool last_look = now >= p.linger_until;  // decided before looking
    const std::size_t found = drain(p, sink, packets_per_look);
    events += found;
    if (i >= lingering_.size() || lingering_[i] != &p) continue;  // it went down
    if (found == 0 && last_look) {
      p.lingering = false;
      lingering_[i] = lingering_.back();
      lingering_.pop_back();
    } else {
      ++i;
    }
  }
  if (page_.header().news.load(std::memory_order_acquire) != news_seen_) read_news();
  for (std::size_t i = 0; i < dying_.size();) {
    pair_state& p = *dying_[i];
    // It ended before the launcher told: all it wrote is visible, and it writes no more.
    const std::size_t found = find_ring(p) ? drain(p, sink, packets_per_look) : 0;
    events += found;
    const bool ending = p.state == health::failed || p.state == health::left;  // not found corrupt meanwhile
    if (found != 0 && ending) {
      ++i;
      continue;
    }
    dying_[i] = dying_.back();
    dying_.pop_back();
    if (ending) events += bury(p, p.state == health::failed ? errc::peer_failed : errc::peer_left, sink);
  }
  if (!dying_.empty()) hurry();
  return events;
}

template <class Sink>
std::size_t shm_fabric::bury(pair_state& p, errc why, Sink& sink) {
  // A peer that writes nonsense may still be alive: the one case in which on_peer_down cannot promise that it
  // writes no more.
  p.state = why == errc::malformed ? health::corrupt : health::buried;
  p.end = why;
  forget(p);
  complete_failures();
  transfers_.abandon(p, why);
  sink.on_peer_down(p.who, why);
  return 1;
}

static_assert(sharing_fabric<shm_fabric>);

}  // namespace verbena::transport::shm
