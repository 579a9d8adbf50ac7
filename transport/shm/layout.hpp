// What lies in the segment behind the job page, format version 1 (job_page_header::shm_offset). All offsets
// count from the start of the segment; local indices are positions in job_page::local_ranks(). Every word
// below starts as zero, and zero is its valid first value: nobody has to initialise anything for anybody.
//
//   rank_card[local_size]                  one line: what peers must know to read this process's memory
//   cold_bits[local_size][cold_words]      one bit per sender, whole lines per receiver: "look at my ring"
//   pair_slot[local_size][local_size]      row = receiver, column = sender, one line each
//   world block                            collective block of the world communicator (collectives/ owns its inside)
//   arena[local_size]                      page aligned; rings, transfer descriptors, collective blocks of that rank
//
// A ring carries packets one way between two ranks. It is made by its sender, in its own arena, on the first
// message; it starts at one page and grows: the new ring is announced in the old one by a line whose size is
// `moved`, so order is kept; the receiver's consumed counters then free the old one. Ring lines hold
// envelopes and small payloads only; a payload above inline_payload lies in the data ring behind them, always
// contiguous, 64-byte granular; both sides compute its position from the running count (skipping the end if
// it does not fit).
#pragma once

#include "base/job_page.hpp"
#include "transport/packet.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbena::transport::shm {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t inline_payload = 40;
inline constexpr std::uint32_t moved =
    0xffffffffU;  ///< ring_line::size of the line that announces a larger ring

/// One packet, or its head. `sequence` is written last, with release: 2 * n + 1 for the n-th line of this
/// ring (n from 0, modulo 2^31), so it is odd and never the zero of fresh memory, and differs from every
/// older word of the same slot.
struct alignas(line_bytes) ring_line {
  std::atomic<std::uint32_t> sequence;
  std::uint32_t
      size;  ///< payload bytes, or `moved` (then the payload's first 8 bytes are the new ring_block's offset)
  envelope head;
  std::byte payload[inline_payload];
};
static_assert(sizeof(ring_line) == line_bytes && offsetof(ring_line, payload) == 24);

/// Head of a ring: two lines, then `lines` ring_lines, then `data_bytes` of data ring.
struct ring_block {
  // line 0: the sender's, constant once announced
  std::uint32_t lines;
  std::uint32_t data_bytes;
  std::atomic<std::uint32_t> wanted;  ///< 1: the sender found no room; who reports some rings it if it sleeps
  std::byte reserved0[52];
  // line 1: the receiver's, written now and then (release), read by the sender when the ring looks full
  // (acquire)
  std::atomic<std::uint64_t> consumed_lines;
  std::atomic<std::uint64_t> consumed_data;  ///< bytes of data ring passed over, skips included
  std::byte reserved1[48];
};
static_assert(sizeof(ring_block) == 2 * line_bytes);

inline constexpr std::uint32_t first_ring_lines =
    30;  ///< with the two head lines and 2 KiB of data: one page
inline constexpr std::uint32_t first_ring_data = 2048;

/// One direction of one pair; mostly read.
struct alignas(line_bytes) pair_slot {
  std::atomic<std::uint64_t> ring;  ///< offset of the first ring_block; 0: none yet. Sender, release, once.
  std::atomic<std::uint32_t>
      hot;  ///< 1: the receiver polls this ring by itself, no cold bit needed. Receiver only.
  std::byte reserved[52];
};
static_assert(sizeof(pair_slot) == line_bytes);

/// One rank's card, filled when it joins, `joined` last with release.
struct alignas(line_bytes) rank_card {
  std::atomic<std::uint32_t> joined;  ///< 1: the rest is valid; 2: was here, and has left
  std::uint32_t pid;  ///< as the rank sees itself; wrong across pid namespaces, which the trial finds out
  std::uint64_t trial_address;  ///< where trial_value lies in the rank's memory
  std::uint64_t trial_value;    ///< random; what a trial read must bring back
  std::uint64_t segment_address;  ///< where the rank has mapped this segment
  std::byte reserved[32];
};
static_assert(sizeof(rank_card) == line_bytes);

/// Life of a transfer. The sender alone takes it from `idle`, the receiver alone brings it back after its
/// last look, so that the sender never reuses a descriptor under the receiver's eyes.
enum transfer_state : std::uint32_t { idle = 0, offered = 1, accepted = 2 };

/// One large message copied by both ends (fabric.hpp, `together`). Lies in the sender's arena.
struct alignas(line_bytes) transfer {
  // line 0: written by the sender before the ticket leaves, then by the receiver in `accept`, state last
  std::uint64_t bytes;
  std::uint64_t source_address;
  std::uint64_t target_address;
  std::atomic<std::uint32_t> state;  ///< transfer_state
  std::atomic<std::uint32_t> generation;
  std::uint32_t chunk_bytes;
  std::uint32_t receiver;  ///< local index of whom it is offered to: nobody else may accept it
  std::byte reserved0[24];
  // line 1: claims; low half = chunks taken from the front, high half = chunks taken from the back, by
  // compare-exchange
  alignas(line_bytes) std::atomic<std::uint64_t> claimed;
  std::atomic<std::uint64_t>
      finished;  ///< bytes in place or given up; equal to `bytes`: nobody copies any more
  std::atomic<std::uint32_t>
      failed;  ///< errno of an end that could not copy; set before its bytes are finished
  std::byte reserved1[44];
};
static_assert(sizeof(transfer) == 2 * line_bytes);

/// Where everything lies, computed alike by every rank from the job page.
struct layout {
  std::uint32_t local_size = 0;
  std::uint32_t cold_words = 0;  ///< 64-bit words per receiver, a multiple of 8
  std::uint64_t cards = 0;
  std::uint64_t cold_bits = 0;
  std::uint64_t pairs = 0;
  std::uint64_t world_block = 0;
  std::uint64_t world_block_bytes = 0;
  std::uint64_t arenas = 0;
  std::uint64_t arena_bytes = 0;

  constexpr std::uint64_t arena(std::uint32_t local_index) const {
    return arenas + local_index * arena_bytes;
  }
};

inline constexpr std::uint64_t page_bytes = 4096;
inline constexpr std::uint64_t world_block_bytes_per_rank = 1ULL << 20;

/// Pure. `area` = [shm_offset, segment_bytes) of the job page.
constexpr layout make_layout(std::uint32_t local_size, std::uint64_t shm_offset,
                             std::uint64_t segment_bytes) {
  constexpr auto up = [](std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; };
  layout at;
  at.local_size = local_size;
  at.cold_words = static_cast<std::uint32_t>(up((local_size + 63) / 64, 8));
  at.cards = shm_offset;
  at.cold_bits = at.cards + std::uint64_t{local_size} * sizeof(rank_card);
  at.pairs = at.cold_bits + std::uint64_t{local_size} * at.cold_words * 8;
  at.world_block = up(at.pairs + std::uint64_t{local_size} * local_size * sizeof(pair_slot), page_bytes);
  at.world_block_bytes = page_bytes + local_size * world_block_bytes_per_rank;
  at.arenas = up(at.world_block + at.world_block_bytes, page_bytes);
  at.arena_bytes =
      at.arenas < segment_bytes ? (segment_bytes - at.arenas) / local_size / page_bytes * page_bytes : 0;
  return at;
}

}  // namespace verbena::transport::shm
