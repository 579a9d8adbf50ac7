// Where a rank keeps what in its arena, computed alike by owner and peers (pure, like layout.hpp which it
// refines):
//
//   first ring[local_size]    one page per receiver
//   grown ring[local_size]    the larger ring a busy pair moves to, per receiver; absent if address space is
//                             short
//   transfer[transfer_slots]  descriptors of large messages
//   registration[..slots]     what peers may put to and get from
//   heap                      allocate() / free(): collective blocks, verbena::memory()
//
// Every ring has its fixed place, so that making one cannot fail and a reader need not believe an offset or a
// size a peer wrote. It costs address space only: an untouched page does not exist, and a pair that uses both
// rings to the full has touched 64 KiB.
#pragma once

#include "transport/shm/layout.hpp"

#include <cstdint>

namespace verbena::transport::shm {

/// Size and inner division of a ring.
struct ring_shape {
  std::uint32_t lines = 0;
  std::uint32_t data_bytes = 0;

  constexpr std::uint64_t bytes() const {
    return sizeof(ring_block) + std::uint64_t{lines} * line_bytes + data_bytes;
  }
  /// Payloads up to this always fit once the receiver has read everything: it has then reported all but less
  /// than a quarter of the data ring, and skipping the end (less than one payload) plus one payload need less
  /// than the other three quarters.
  constexpr std::uint32_t largest_payload() const { return data_bytes / 8 * 3; }
};

inline constexpr ring_shape first_shape{first_ring_lines, first_ring_data};
static_assert(first_shape.bytes() == page_bytes);

/// Grown rings, best first; the first whose places leave half of the arena to other uses is taken.
inline constexpr ring_shape grown_shapes[] = {{254, 45056}, {126, 20480}, {62, 8192}};
static_assert(grown_shapes[0].bytes() + page_bytes == 64 * 1024);
static_assert(grown_shapes[1].bytes() + page_bytes == 32 * 1024);
static_assert(grown_shapes[2].bytes() + page_bytes == 16 * 1024);

/// What one packet may carry. Measured: in pieces of 4 KiB the sender's and the receiver's copies of a longer
/// message overlap best (8 KiB message: 1.6 us, in one piece 2.1 us).
inline constexpr std::uint32_t packet_limit = 4096;

inline constexpr std::uint32_t transfer_slots = 256;
inline constexpr std::uint32_t registration_slots = 1024;

/// A range of memory that peers may reach. `generation` is odd while it is valid and changes with each use of
/// the slot.
struct registration {
  std::uint64_t address;  ///< in the owner's memory; written before `generation`
  std::uint64_t bytes;
  std::atomic<std::uint32_t> generation;
  std::uint32_t reserved;
};
static_assert(sizeof(registration) == 24);

struct places {
  layout at;
  ring_shape grown;               ///< lines == 0: rings do not grow in this segment
  std::uint64_t grown_rings = 0;  ///< offsets from the start of an arena
  std::uint64_t transfers = 0;
  std::uint64_t registrations = 0;
  std::uint64_t heap = 0;
  std::uint64_t heap_bytes = 0;  ///< 0: the segment is too small for this format

  constexpr std::uint64_t first_ring(std::uint32_t sender, std::uint32_t receiver) const {
    return at.arena(sender) + receiver * page_bytes;
  }
  constexpr std::uint64_t grown_ring(std::uint32_t sender, std::uint32_t receiver) const {
    return at.arena(sender) + grown_rings + receiver * grown.bytes();
  }
  constexpr std::uint32_t packet_bytes() const {
    const std::uint32_t largest = (grown.lines != 0 ? grown : first_shape).largest_payload();
    return largest < packet_limit ? largest : packet_limit;
  }
};

constexpr places make_places(const layout& at) {
  places p;
  p.at = at;
  for (const ring_shape& shape : grown_shapes)
    if (at.local_size * (page_bytes + shape.bytes()) <= at.arena_bytes / 2) {
      p.grown = shape;
      break;
    }
  p.grown_rings = at.local_size * page_bytes;
  p.transfers = p.grown_rings + (p.grown.lines != 0 ? at.local_size * p.grown.bytes() : 0);
  p.registrations = p.transfers + transfer_slots * sizeof(transfer);
  const std::uint64_t end = p.registrations + registration_slots * sizeof(registration);
  p.heap = (end + page_bytes - 1) / page_bytes * page_bytes;
  p.heap_bytes = p.heap < at.arena_bytes ? at.arena_bytes - p.heap : 0;
  return p;
}

}  // namespace verbena::transport::shm
