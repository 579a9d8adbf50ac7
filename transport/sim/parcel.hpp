// One thing under way in a simulated world, the pool it lives in, and the queue that says what happens next.
// Parcels are named by index: nothing depends on addresses, so a run depends on nothing but its seed.
#pragma once

#include "base/clock.hpp"
#include "transport/fabric.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace verbena::transport::sim {

enum class parcel_kind : std::uint8_t {
  none,  ///< cancelled, or free
  packet,
  put,
  put_with_flag,
  get,
  fetch_add,
  compare_swap,
  offered,     ///< waits for `accept`; both ends copy
  shared,      ///< an accepted offer, posted by the receiver; words name the offer and its serial
  flag,        ///< what is left of a put_with_flag once its data is in place
  completion,  ///< of a one-sided operation, on its way back or waiting for its poster's poll
  stranded,    ///< its target died: pending until the news of it reaches `from`
  down,        ///< news of the death of `from`
  nudge,       ///< makes an endpoint look again after a refusal by chance
  death,       ///< of `to`, planned
  // Under a session (links.cpp, outage.cpp):
  retained,   ///< a packet that `to` has not acknowledged; never under way itself
  sequenced,  ///< a copy of it on its way
  answer,     ///< what has arrived, told without a packet
  timer,      ///< the session of `from` with `to` looks at the clock
  parked,     ///< a one-sided operation whose end is not known, while the link is down
  cut,        ///< an outage begins ...
  mend,       ///< ... and ends
  proposal,   ///< a new connection is asked for
  agreed,     ///< and answered
};

enum class parcel_place : std::uint8_t { loose, agenda, inbox, held };

inline constexpr std::uint32_t no_parcel = UINT32_MAX;

struct parcel {
  parcel_kind what = parcel_kind::none;
  parcel_kind asked = parcel_kind::none;  ///< of a completion: what it completes
  parcel_place place = parcel_place::loose;
  bool holds_window = false;       ///< counts against the window of (from, to)
  bool in_session = false;         ///< a one-sided operation that the session of (from, to) retains
  errc error = errc::success;      ///< of a completion
  std::uint32_t from = 0;          ///< who posted; of a completion too
  std::uint32_t to = 0;            ///< at whom it was posted
  std::uint32_t next = no_parcel;  ///< in an inbox
  std::uint64_t serial = 0;        ///< order of posting
  std::uint64_t position = 0;      ///< in what the session retains
  operation* op = nullptr;         ///< what is pending at `from`
  envelope head;
  buffer local;  ///< at `from`; the user's until the completion
  remote_key key;
  std::uint64_t offset = 0;
  std::uint64_t words[2] = {};
  session_header
      head_of_session;  ///< of what is sequenced; of an answer: newest and acknowledged; of a flag: what it follows
  std::uint32_t incarnation = 0;  ///< of the connection on which it travels
  std::vector<std::byte> bytes;   ///< payload, or what a get brings back; keeps its capacity when reused
};

/// Parcels stay where they are while the pool grows: completions may post.
class parcel_pool {
 public:
  std::uint32_t take() {
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(parcels_.size());
      parcels_.emplace_back();
      free_.reserve(parcels_.size());
    } else {
      index = free_.back();
      free_.pop_back();
    }
    return index;
  }
  void give_back(std::uint32_t index) noexcept {
    parcel& p = parcels_[index];
    std::vector<std::byte> kept = std::move(p.bytes);
    if (kept.capacity() > most_kept) kept = {};
    kept.clear();
    p = parcel{};
    p.bytes = std::move(kept);
    free_.push_back(index);
  }
  parcel& operator[](std::uint32_t index) noexcept { return parcels_[index]; }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(parcels_.size()); }
  std::uint32_t in_use() const noexcept { return static_cast<std::uint32_t>(parcels_.size() - free_.size()); }

 private:
  static constexpr std::size_t most_kept = 8192;
  std::deque<parcel> parcels_;
  std::vector<std::uint32_t> free_;
};

/// What happens when: earliest first, and in the order of entering where times are equal.
class agenda {
 public:
  struct entry {
    base::nanoseconds time = 0;
    std::uint64_t serial = 0;
    std::uint32_t index = 0;
  };

  bool empty() const noexcept { return heap_.empty(); }
  void enter(base::nanoseconds time, std::uint32_t index) {
    heap_.push_back({time, serial_++, index});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  entry take() noexcept {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const entry first = heap_.back();
    heap_.pop_back();
    return first;
  }

 private:
  static bool later(const entry& a, const entry& b) noexcept {
    return a.time != b.time ? a.time > b.time : a.serial > b.serial;
  }
  std::vector<entry> heap_;
  std::uint64_t serial_ = 0;
};

}  // namespace verbena::transport::sim
