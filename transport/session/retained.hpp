// What was posted to one peer and may have to be posted again, in the order of posting: packets until they are
// acknowledged, one-sided operations until they end. An entry holds a number of its customer's (a slot, a
// position in a buffer), never bytes. Bounded: `most` entries, reached by doubling, so that a quiet peer costs
// little and a warm one allocates nothing.
//
//   head <= ... finished or not ... <= tail        positions count up for ever; entry i lies at i mod size
#pragma once

#include "base/check.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace verbena::transport::session {

enum class kind : std::uint8_t {
  finished,  ///< nothing to be done about it any more
  packet,    ///< has a number; the peer acknowledges it
  put,       ///< may be carried out twice, but not behind a packet that has arrived
  get,       ///< may be carried out again at any time
  flag,      ///< put_with_flag: must not be carried out twice
  atomic,    ///< must not be carried out twice, and its answer may be lost
};

struct entry {
  std::uint64_t cookie = 0;
  std::uint32_t sequence = 0;  ///< of a packet; of anything else: of the packet before it
  kind what = kind::finished;
};

class retained {
 public:
  explicit retained(std::uint32_t most) : most_(std::bit_ceil(most)) {
    base::check(most > 0 && most <= 1U << 30,
                "session: room for nothing, or for more than numbers can tell apart");
  }

  bool full() const noexcept { return tail_ - head_ == most_; }
  bool empty() const noexcept { return tail_ == head_; }
  std::uint64_t head() const noexcept { return head_; }
  std::uint64_t tail() const noexcept { return tail_; }
  std::uint32_t most() const noexcept { return most_; }
  entry& operator[](std::uint64_t position) noexcept { return entries_[position & mask_]; }
  const entry& operator[](std::uint64_t position) const noexcept { return entries_[position & mask_]; }

  /// Its position. There is room.
  std::uint64_t append(const entry& e) {
    if (tail_ - head_ == entries_.size()) [[unlikely]]
      grow();
    entries_[tail_ & mask_] = e;
    return tail_++;
  }
  void finish(std::uint64_t position) noexcept {
    entries_[position & mask_].what = kind::finished;
    while (head_ != tail_ && entries_[head_ & mask_].what == kind::finished) ++head_;
  }

 private:
  void grow() {
    base::check(!full(), "session: posted without room");
    std::vector<entry> larger(entries_.empty() ? std::min(most_, 8U) : entries_.size() * 2);
    for (std::uint64_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = entries_[i & mask_];
    entries_.swap(larger);
    mask_ = entries_.size() - 1;
  }

  std::uint32_t most_;
  std::uint64_t head_ = 0, tail_ = 0;
  std::uint64_t mask_ = 0;
  std::vector<entry> entries_;
};

}  // namespace verbena::transport::session
