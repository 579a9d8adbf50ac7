// The collective block of a node: shared memory of all members of a communicator, format version 1. Every
// word starts as zero, and zero is its valid first value. Words only grow, so nothing is ever reset, and no
// member writes what another one owns, except the gathering's two words.
//
//   0      block_head, padded to a page
//   page   member_head[members]   close together, not a power of two apart: all of them are read in a row
//   then   (page aligned) of each member node_slots slots of scratch, used in turn (collectives/schedule.hpp)
//
// It must not know schedules, element types or the engine.
#pragma once

#include "collectives/announcement.hpp"
#include "collectives/schedule.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbena::collectives {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t block_page = 4096;

/// A line that carries its own news: whoever sees `sequence` (acquire) sees the payload. The shortest way to
/// hand over a few bytes: one line moves, once.
struct alignas(line_bytes) flagged_line {
  std::atomic<std::uint64_t> sequence;  ///< owner, release, after the payload
  std::byte payload[56];
};
static_assert(sizeof(flagged_line) == line_bytes);

inline constexpr std::size_t line_payload = sizeof(flagged_line::payload);
inline constexpr std::uint32_t lines_per_exchange = 20;
inline constexpr std::size_t largest_line_exchange = lines_per_exchange * line_payload;  ///< 1120 bytes

struct block_head {
  // line 0: hints for wakers, read at each publication, written only by members that go to sleep
  std::atomic<std::uint32_t> bell_sleepers;   ///< members that may sleep on their doorbell
  std::atomic<std::uint32_t> futex_sleepers;  ///< members that may sleep on `release`
  std::byte reserved0[56];
  // line 1: the gathering
  std::atomic<std::uint64_t> arrived;  ///< arrivals at all gatherings so far; fetch_add, acquire and release
  std::byte reserved1[56];
  // line 2
  std::atomic<std::uint32_t> release;  ///< number of the last gathering that was released; a shared futex
  std::byte reserved2[60];
};
static_assert(sizeof(block_head) == 3 * line_bytes && sizeof(block_head) <= block_page);
static_assert(offsetof(block_head, arrived) == line_bytes && offsetof(block_head, release) == 2 * line_bytes);

struct member_head {
  // line 0: `publish` steps of this member so far; owner, release
  alignas(line_bytes) std::atomic<std::uint64_t> progress;
  std::atomic<std::uint64_t>
      announced[announced_words];  ///< by call number; owner, relaxed, before it publishes
  std::byte reserved[24];
  /// Short exchanges, by parity of the exchange's number. Two are enough: who writes exchange s has finished
  /// s - 1, so has seen everybody's line of s - 1, so everybody has finished s - 2, the last user of this
  /// half.
  flagged_line lines[2][lines_per_exchange];
};
static_assert(offsetof(member_head, lines) == line_bytes && sizeof(member_head) == 41 * line_bytes);

/// A slot is never larger: enough to pipeline, and several slots of several members stay in cache.
inline constexpr std::size_t largest_slot = 128 << 10;
/// A block without room for slots of this size is of no use.
inline constexpr std::size_t smallest_slot = 4096;

/// View of a block; owns nothing. Invalid (`!valid()`) where there is no block, or one too small to be of
/// use.
class node_view {
 public:
  node_view() = default;
  node_view(std::byte* data, std::size_t bytes, int members) noexcept;

  bool valid() const noexcept { return data_ != nullptr; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  block_head& head() const noexcept { return *reinterpret_cast<block_head*>(data_); }
  member_head& member(int i) const noexcept { return reinterpret_cast<member_head*>(data_ + block_page)[i]; }
  std::byte* slot(int i, std::uint64_t turn) const noexcept {
    return slots_ + static_cast<std::size_t>(i) * span_ + turn % node_slots * slot_bytes_;
  }

 private:
  std::byte* data_ = nullptr;
  std::byte* slots_ = nullptr;
  std::size_t span_ = 0;  ///< from member to member
  std::size_t slot_bytes_ = 0;
};

}  // namespace verbena::collectives
