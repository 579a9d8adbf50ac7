// Everything between this rank and one other: its queue pairs, what may be sent, what is under way. Data only; the
// endpoint acts on it.
//
// There are up to three queue pairs between two ranks A and B, all on the shared receive queue:
//   packets    made at join; packets and control words both ways, no access to memory but by empty writes (probes)
//   accesses   A's puts, gets and atomics to B, made at A's first one; there is another one for B's to A
// So an access that is refused for its key, which breaks the queue pair it was on, loses no packet and nothing that B has
// under way; what A had behind it was not carried out, and is done again on the queue pair made anew. In exchange a packet
// waits here until the puts before it are acknowledged (rule 1 of the contract), but for those that ask for no order
// (put_apart): a rendezvous says itself when its put is through.
//
//   absent --attach--> up --a request fails, or the peer says so--> broken --both have agreed--> up
//   up, broken --death, goodbye, given up, nonsense--> closing --all that came is reported--> down
#pragma once

#include "base/clock.hpp"
#include "transport/fabric.hpp"
#include "transport/verbs/memory.hpp"
#include "transport/verbs/mending.hpp"
#include "transport/verbs/queue_pair.hpp"
#include "transport/verbs/region.hpp"
#include "transport/verbs/wire.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::transport::verbs {

inline bool is_atomic(access_kind what) noexcept {
  return what == access_kind::fetch_add || what == access_kind::compare_swap;
}
inline bool is_put(access_kind what) noexcept {
  return what == access_kind::put || what == access_kind::put_apart || what == access_kind::put_with_flag;
}
inline bool holds_packets(access_kind what) noexcept {
  return is_put(what) && what != access_kind::put_apart;
}

/// One access that was taken and has not ended. Posted as one or more requests, in order.
struct access {
  access_kind what = access_kind::put;
  operation* op = nullptr;
  std::byte* local = nullptr;
  std::size_t size = 0;
  std::uint64_t remote = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t local_key = 0;
  std::uint64_t first = 0;   ///< the flag, the addend, or what to compare with
  std::uint64_t second = 0;  ///< what to swap in
  hold own;                  ///< held for this access
  std::uint32_t word = 0;    ///< of an atomic: its place in the memory for old values
  bool has_word = false;
  bool all_posted = false;
  std::size_t posted = 0;  ///< bytes handed to the device
  std::uint32_t last = 0;  ///< number of its last request, once all are posted
};

/// Accesses in the order they were taken, at most so many.
class access_ring {
 public:
  static constexpr std::uint32_t most = 64;

  std::uint32_t size() const noexcept { return size_; }
  bool full() const noexcept { return size_ == most; }
  access& operator[](std::uint32_t i) noexcept { return all_[(first_ + i) % most]; }
  access& push() {
    if (all_.empty()) all_.resize(most);
    access& fresh = (*this)[size_++];
    fresh = {};
    return fresh;
  }
  void pop() noexcept {
    first_ = (first_ + 1) % most;
    --size_;
  }

 private:
  std::vector<access> all_;
  std::uint32_t first_ = 0;
  std::uint32_t size_ = 0;
};

/// A packet that may have to be sent again: it lies in its slot until the peer has given its room back.
struct kept_packet {
  std::uint32_t slot = 0;
  std::uint32_t bytes = 0;
};

enum class link_state : std::uint8_t {
  absent,  ///< not attached
  up,
  broken,   ///< it will be made anew, or given up
  closing,  ///< its end is known; what is under way comes to its end
  down,
};

enum class access_state : std::uint8_t {
  closed,
  opening,  ///< the other side was asked
  open,
  broken,   ///< a request failed; the rest is being flushed
  refused,  ///< the other side, or the device, cannot make the queue pair
};

struct link {
  peer who;
  link_state state = link_state::absent;
  contact there;
  queue_pair packets;
  address_handle way;         ///< for letters; null: it cannot be mended
  std::uint8_t way_from = 0;  ///< index of our GID in it

  // What we send. Numbers of packets wrap; 0 is left out, it marks control words.
  std::uint32_t sent = 0;        ///< packets, ever
  std::uint32_t given_back = 0;  ///< of those, whose room the peer has given back
  std::uint32_t posted = 0;      ///< of those, the last one that was posted; behind `sent` only after a break
  std::uint32_t window = 0;      ///< so many may be without that
  std::vector<kept_packet> kept;  ///< those, by their number modulo its size, which is a power of two
  std::uint32_t flags_sent = 0;
  std::uint32_t flags_given_back = 0;
  std::vector<std::uint32_t>
      slots;  ///< by number of the request modulo its size: the slot that goes with it, or no_slot

  // What comes in.
  std::uint32_t received = 0;           ///< packets, ever, whose room is given back
  std::uint32_t arrived = 0;            ///< packets, ever
  std::uint32_t told = 0;               ///< of those given back, what the peer has heard of
  std::uint32_t probed_at = 0;          ///< `arrived`, when it was last asked whether the peer is silent
  std::uint32_t awaited = 0;            ///< number of a request that must be over in time
  base::nanoseconds awaited_since = 0;  ///< 0: none is
  std::uint32_t flags_arrived = 0;
  std::uint32_t flags_received = 0;
  std::uint32_t flags_told = 0;

  // Our accesses to the peer's memory.
  access_state accesses_are = access_state::closed;
  queue_pair accesses;
  access_ring under_way;        ///< in order; those whose requests are all posted first
  std::uint32_t puts_held = 0;  ///< puts among them that packets must not overtake
  std::uint32_t round = 0;
  std::uint32_t access_start = 0;  ///< its first packet sequence number
  errc culprit = errc::link_down;  ///< broken: why the first of them failed

  // Its accesses to ours.
  queue_pair serving;

  // Control words whose queue pair is still to be connected, which can take a while.
  bool was_asked = false;
  bool was_answered = false;
  control asked;     ///< open
  control answered;  ///< opened

  // Mending.
  mending mends;
  std::uint32_t start = 0;  ///< first packet sequence number of the connection to come
  base::nanoseconds stopped_at = 0;
  base::nanoseconds silenced_at = 0;  ///< stopped, and reset since then; 0: not yet
  std::uint32_t mended = 0;           ///< times, ever
  lives lived;

  // Control words that wait for room.
  bool owes_credit = false;
  bool owes_open = false;
  bool owes_opened = false;
  bool said_bye = false;
  std::uint32_t opened_round = 0;

  bool busy = false;  ///< in the endpoint's list of links with something that waits for room

  errc end = errc::success;  ///< closing, down, broken: why
  base::nanoseconds closing_since = 0;
  std::string last_words;  ///< what broke it, in a sentence

  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};
  /// Neither gone nor given up.
  bool reachable() const noexcept { return state == link_state::up || state == link_state::broken; }
  bool up() const noexcept { return state == link_state::up; }
  /// Broken, and everything of the old connection is told: what still comes of it does not count.
  bool is_drained() const noexcept {
    return state == link_state::broken && mends.is() != mending::stage::draining;
  }
  /// Flags that are handed to the device, and not known to be over.
  std::uint32_t flags_under_way() noexcept {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < under_way.size(); ++i)
      if (under_way[i].what == access_kind::put_with_flag && under_way[i].all_posted) ++count;
    return count;
  }
  kept_packet& kept_of(std::uint32_t number) noexcept { return kept[number & (kept.size() - 1)]; }
};

}  // namespace verbena::transport::verbs
