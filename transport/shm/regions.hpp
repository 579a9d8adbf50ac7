// What peers of the node may put to and get from: a table in the owner's arena that they look at before every
// access, so that a key that was never given or is revoked is refused. Nothing is pinned: the kernel copies.
// (A revocation racing with an access is the owner's affair, as with any registration.)
#pragma once

#include "transport/fabric.hpp"
#include "transport/shm/places.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace verbena::transport::shm {

class region_table {
 public:
  region_table(std::byte* base, const places& where, std::uint32_t local_index)
      : own_(table(base, where, local_index)), local_index_(local_index) {}

  /// A key with handle 0 if the table is full.
  remote_key add(buffer local);
  void remove(const remote_key& key) noexcept;

  /// May a holder of `key`, which rank `owner` should have made, reach [offset, offset + bytes)?
  static bool allows(std::byte* base, const places& where, std::uint32_t owner, const remote_key& key,
                     std::uint64_t offset, std::uint64_t bytes) noexcept;

 private:
  static registration* table(std::byte* base, const places& where, std::uint32_t owner) noexcept {
    return reinterpret_cast<registration*>(base + where.at.arena(owner) + where.registrations);
  }
  registration* own_;
  std::uint32_t local_index_;
  std::uint32_t never_used_ = 0;
  std::vector<std::uint32_t> free_;
};

/// Proof of a registration; the fabric outlives it.
class region {
 public:
  region() = default;
  region(region_table& table, const remote_key& key) noexcept : table_(&table), key_(key) {}
  region(region&& other) noexcept : table_(std::exchange(other.table_, nullptr)), key_(other.key_) {}
  region& operator=(region&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(key_, other.key_);
    return *this;
  }
  ~region() {
    if (table_ != nullptr) table_->remove(key_);
  }
  remote_key key() const noexcept { return key_; }
  explicit operator bool() const noexcept { return table_ != nullptr; }

 private:
  region_table* table_ = nullptr;
  remote_key key_;
};

}  // namespace verbena::transport::shm
