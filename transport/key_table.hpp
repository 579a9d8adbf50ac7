// The registrations of one endpoint, for fabrics that check remote keys in software: which ranges of local
// memory peers may touch, by slot and generation. A key is untrusted bytes: `resolve` believes nothing in it
// but what the table says itself. It must not know who asks or how bytes move.
#pragma once

#include "transport/fabric.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace verbena::transport {

class key_table {
 public:
  static constexpr std::uint32_t mark = 0x6b657973U;  ///< keys[0] of every key of such a table

  /// Slots start with this generation: tables that start apart do not take each other's keys.
  explicit key_table(std::uint32_t first_generation = 1) noexcept : first_generation_(first_generation) {}

  /// Enters a range; the key's `fabric` byte is left for the route to stamp. Slots run out at a million live
  /// ranges: then the key's handle is 0, which no valid key has.
  remote_key add(buffer local) {
    if (free_.empty()) {
      if (entries_.size() == slot_mask) return {};
      free_.push_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back().generation = first_generation_;
      free_.reserve(entries_.size());  // so that `remove` allocates nothing
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    entry& at = entries_[slot];
    at.data = local.data;
    at.size = local.size;
    at.kind = local.kind;
    at.live = true;
    ++live_;
    return key_of(slot);
  }

  void remove(const remote_key& key) noexcept {
    const std::uint32_t slot = (key.handle & slot_mask) - 1;
    if (slot >= entries_.size() || !entries_[slot].live || key.keys[1] != entries_[slot].generation) return;
    entries_[slot].live = false;
    ++entries_[slot].generation;
    --live_;
    free_.push_back(slot);
  }

  /// Where the bytes [offset, offset + size) of the key's range lie; null if the key is wrong or revoked or
  /// the bytes are not all inside. (An empty range of a valid key is not null.)
  std::byte* resolve(const remote_key& key, std::uint64_t offset, std::uint64_t size) const noexcept {
    const std::uint32_t slot = (key.handle & slot_mask) - 1;
    if (slot >= entries_.size()) return nullptr;
    const entry& at = entries_[slot];
    const remote_key expected = key_of(slot);
    const bool same = at.live && key.handle == expected.handle && key.keys[0] == expected.keys[0] &&
                      key.keys[1] == expected.keys[1] && key.address == expected.address &&
                      key.size == expected.size;
    if (!same || offset > at.size || size > at.size - offset) return nullptr;
    static std::byte nothing;
    return at.data == nullptr ? &nothing : at.data + offset;
  }

  std::size_t live() const noexcept { return live_; }

 private:
  static constexpr std::uint32_t slot_bits = 20;
  static constexpr std::uint32_t slot_mask = (1U << slot_bits) - 1;

  struct entry {
    std::byte* data = nullptr;
    std::size_t size = 0;
    std::uint32_t generation = 1;
    memory_kind kind = memory_kind::host;
    bool live = false;
  };

  // The handle has room for 12 bits of generation only, so keys[1] repeats it in full; keys[0] marks our kind
  // of key.
  remote_key key_of(std::uint32_t slot) const noexcept {
    const entry& at = entries_[slot];
    remote_key key;
    key.address = reinterpret_cast<std::uintptr_t>(at.data);
    key.size = at.size;
    key.keys[0] = mark;
    key.keys[1] = at.generation;
    key.handle = (at.generation << slot_bits) | (slot + 1);
    key.kind = static_cast<std::uint8_t>(at.kind);
    return key;
  }

  std::uint32_t first_generation_;
  std::vector<entry> entries_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
};

/// The move-only registration of fabrics that keep a key_table. The table outlives its regions.
class table_region {
 public:
  table_region() = default;
  table_region(key_table& table, const remote_key& key) noexcept : table_(&table), key_(key) {}
  table_region(table_region&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), key_(std::exchange(other.key_, {})) {}
  table_region& operator=(table_region&& other) noexcept {
    table_region old(std::move(*this));
    table_ = std::exchange(other.table_, nullptr);
    key_ = std::exchange(other.key_, {});
    return *this;
  }
  ~table_region() {
    if (table_ != nullptr) table_->remove(key_);
  }

  remote_key key() const noexcept { return key_; }
  explicit operator bool() const noexcept { return table_ != nullptr; }

 private:
  key_table* table_ = nullptr;
  remote_key key_;
};

}  // namespace verbena::transport
