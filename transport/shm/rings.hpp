// The two ends of a ring (layout.hpp) and the instructions of the warm path: one line written by the sender,
// one line looked at by the receiver. Each end is private memory of its process; what both share is reached
// through the pointers. Must not know who sleeps, who is hot or what a packet means.
//
// Which order protects what:
//   line contents, data    sequence: release by the sender, acquire by the receiver
//   reuse of a line, data  consumed counters: release by the receiver, acquire by the sender
#pragma once

#include "base/prefetch.hpp"
#include "transport/shm/places.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbena::transport::shm {

/// ring_line::size of a line that carries the word of a put_with_flag in its payload's first 8 bytes.
inline constexpr std::uint32_t flag_mark = 0xfffffffeU;

struct ring_sender {
  ring_line* at = nullptr;     ///< next line to write
  ring_line* end = nullptr;    ///< behind the last line, where the data ring begins
  std::uint32_t sequence = 1;  ///< of the next line
  std::uint32_t limit = 1;  ///< `sequence` up to which lines may be written before `consumed` is read again
  std::uint32_t lines = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t data_at = 0;     ///< position in the data ring
  std::uint32_t data_room = 0;   ///< bytes that may be written, skips included
  std::uint64_t line_count = 0;  ///< lines written when `limit` is reached
  std::uint64_t data_count = 0;  ///< bytes of data written, skips included, when `data_room` is used up

  bool full() const noexcept { return sequence == limit; }
  void close() noexcept { limit = sequence; }  ///< full from now on

  ring_block& block() const noexcept { return *reinterpret_cast<ring_block*>(begin() - 2); }
  ring_line* begin() const noexcept { return end - lines; }

  /// Starts on a fresh ring at `memory` (zero). One line is kept back for `moved`.
  void open(std::byte* memory, ring_shape shape) noexcept {
    auto& head = *reinterpret_cast<ring_block*>(memory);
    head.lines = shape.lines;
    head.data_bytes = shape.data_bytes;
    at = reinterpret_cast<ring_line*>(&head + 1);
    end = at + shape.lines;
    sequence = 1;
    lines = shape.lines;
    data_bytes = data_room = shape.data_bytes;
    line_count = lines - 1;
    limit = sequence + 2 * (lines - 1);
    data_at = 0;
    data_count = data_room;
  }

  /// Reads how far the receiver is. True if that gave new room.
  bool refresh() noexcept {
    const ring_block& head = block();
    // acquire: the receiver's reads of what is now overwritten came before
    const std::uint64_t lines_done = head.consumed_lines.load(std::memory_order_acquire);
    const std::uint64_t data_done = head.consumed_data.load(std::memory_order_acquire);
    const std::uint64_t line_limit = lines_done + lines - 1;
    const std::uint64_t data_limit = data_done + data_bytes;
    const bool gained = line_limit != line_count || data_limit != data_count;
    limit += 2 * static_cast<std::uint32_t>(line_limit - line_count);
    data_room += static_cast<std::uint32_t>(data_limit - data_count);
    line_count = line_limit;
    data_count = data_limit;
    return gained;
  }

  /// Bytes of the data ring that a payload takes, the skipped end included.
  std::uint32_t data_cost(std::uint32_t size) const noexcept {
    const std::uint32_t padded = (size + 63U) & ~63U;
    return data_at + padded > data_bytes ? data_bytes - data_at + padded : padded;
  }

  /// Where a payload of `size` goes; null: no room.
  std::byte* take_data(std::uint32_t size) noexcept {
    const std::uint32_t cost = data_cost(size);
    if (cost > data_room) [[unlikely]]
      return nullptr;
    data_room -= cost;
    const std::uint32_t padded = (size + 63U) & ~63U;
    if (data_at + padded > data_bytes) data_at = 0;
    std::byte* start = reinterpret_cast<std::byte*>(end) + data_at;
    data_at += padded;
    return start;
  }

  /// Publishes the line at `at`, whose other words are written.
  void publish() noexcept {
    ring_line* line = at;
    line->sequence.store(sequence,
                         std::memory_order_release);  // last: the line and its data are visible first
    sequence += 2;
    at = line + 1 == end ? begin() : line + 1;
    // The receiver read the coming lines a round ago. Fetching them back one ahead, for writing, more than
    // doubles the rate of small messages; further ahead they are taken from under a receiver that looks.
    base::prefetch_for_write(at + 1);
  }

  /// After a payload of `size`: fetches back the part of the data ring where the next one is going to lie.
  void prefetch_data(std::size_t size) const noexcept {
    const std::uint32_t start = data_at + size > data_bytes ? 0 : data_at;
    const std::byte* next = reinterpret_cast<const std::byte*>(end) + start;
    for (std::size_t i = 0; i < size; i += line_bytes) base::prefetch_for_write(next + i);
  }
};

struct ring_receiver {
  const ring_line* at = nullptr;  ///< next line to look at
  const ring_line* end = nullptr;
  std::uint32_t expect = 1;      ///< sequence that makes it valid
  std::uint32_t unreported = 0;  ///< lines read since `consumed_lines` was written
  std::uint32_t lines = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t data_at = 0;
  std::uint32_t data_unreported = 0;
  ring_block* block = nullptr;

  void open(std::byte* memory, ring_shape shape) noexcept {
    block = reinterpret_cast<ring_block*>(memory);
    at = reinterpret_cast<const ring_line*>(block + 1);
    end = at + shape.lines;
    expect = 1;
    unreported = data_unreported = data_at = 0;
    lines = shape.lines;
    data_bytes = shape.data_bytes;
  }

  bool ready() const noexcept {
    return at->sequence.load(std::memory_order_acquire) == expect;  // pairs with publish
  }

  /// Where take_data(size) will find the payload; `size` <= data_bytes.
  std::span<const std::byte> peek_data(std::uint32_t size) const noexcept {
    const std::uint32_t padded = (size + 63U) & ~63U;
    const std::uint32_t position = data_at + padded > data_bytes ? 0 : data_at;
    return {reinterpret_cast<const std::byte*>(end) + position, size};
  }

  /// The payload of `size` in the data ring; empty if no honest sender could have put it there.
  std::span<const std::byte> take_data(std::uint32_t size) noexcept {
    // Whatever has room may come, also in a ring that does not promise room for it (largest_payload).
    if (size > data_bytes) return {};
    const std::uint32_t padded = (size + 63U) & ~63U;
    std::uint32_t cost = padded;
    if (data_at + padded > data_bytes) {
      cost += data_bytes - data_at;
      data_at = 0;
    }
    const std::byte* start = reinterpret_cast<const std::byte*>(end) + data_at;
    data_at += padded;
    data_unreported += cost;
    return {start, size};
  }

  /// Done with the line at `at` and its data. Tells the sender every quarter ring: then a sender that finds
  /// no room always finds some once everything is read. True if the sender waits for that.
  bool advance() noexcept {
    expect += 2;
    if (++at == end) at = end - lines;
    if (++unreported < lines / 4 && data_unreported < data_bytes / 4) return false;
    report();
    return block->wanted.load(std::memory_order_relaxed) != 0;
  }

  void report() noexcept {
    // Only this side writes the counters. release: our reads of the lines and data came before.
    auto add = [](std::atomic<std::uint64_t>& counter, std::uint32_t more) {
      counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_release);
    };
    if (data_unreported > 0) add(block->consumed_data, data_unreported);
    add(block->consumed_lines, unreported);
    unreported = data_unreported = 0;
  }
};

}  // namespace verbena::transport::shm
