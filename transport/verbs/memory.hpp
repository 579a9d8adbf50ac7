// Memory that the device knows: what users registered, what stays registered between transfers (region_cache.hpp), and the
// fixed slots that packets are sent from and received into. It must not know peers.
#pragma once

#include "transport/fabric.hpp"
#include "transport/region_cache.hpp"
#include "transport/verbs/objects.hpp"
#include "transport/verbs/region.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace verbena::transport::verbs {

/// One use of a registration.
struct hold {
  region_entry* entry = nullptr;
  bool kept = false;  ///< it stays registered when nobody uses it any more
  explicit operator bool() const noexcept { return entry != nullptr; }
  ibv_mr* mr() const noexcept { return static_cast<ibv_mr*>(entry->what); }
};

/// Ranges that are registered, by address: an access of our own needs the local key of its buffer. A registration goes
/// with its last use, unless it is kept (region_cache.hpp).
class registrations {
 public:
  registrations(ibv_pd* domain, region_cache::bounds kept);
  ~registrations();
  registrations(const registrations&) = delete;
  registrations& operator=(const registrations&) = delete;

  /// A new one, not kept. Empty: refused (locked memory, or the device's own limits), although all that was kept and not
  /// in use was let go.
  hold add(buffer local);
  /// For a transfer: a kept one if it can be. Empty: refused.
  hold take(buffer local);
  /// The same for who mostly holds one for this memory already, and does not count twice.
  hold take_again(buffer local);
  void give_back(const hold& held) noexcept;

  remote_key key_of(buffer local, const hold& held) noexcept;

  region_cache& kept() noexcept { return kept_; }

 private:
  ibv_mr* pin(memory_range range) noexcept;

  ibv_pd* domain_;
  region_cache kept_;
  std::multimap<std::uintptr_t, std::unique_ptr<region_entry>> ranges_;  ///< the others, by their begin
  std::uint32_t serial_ = 0;
};

/// What a key must carry as its handle. No guard, the device's check is that: it lets a damaged key be refused where it
/// is used, where it costs nothing, instead of at the target, where it costs both sides a queue pair.
std::uint32_t checksum_of(const remote_key& key) noexcept;

/// Equal slots in one registered piece of memory.
class slot_pool {
 public:
  slot_pool() = default;
  /// Empty (operator bool) if memory or registration is refused.
  slot_pool(ibv_pd* domain, std::uint32_t count, std::size_t slot_bytes);

  explicit operator bool() const noexcept { return mr_ != nullptr; }
  std::byte* at(std::uint32_t slot) const noexcept { return memory_.get() + slot * slot_bytes_; }
  std::uint32_t key() const noexcept { return mr_->lkey; }
  std::uint32_t count() const noexcept { return count_; }
  bool any() const noexcept { return !free_.empty(); }
  std::uint32_t take() noexcept {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::uint32_t slot) noexcept {
    free_.push_back(slot);
  }  // there is room: it was taken from here

 private:
  struct unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept;
  };
  std::uint32_t count_ = 0;
  std::size_t slot_bytes_ = 0;
  std::unique_ptr<std::byte, unmap> memory_;
  memory_handle mr_;
  std::vector<std::uint32_t> free_;
};

}  // namespace verbena::transport::verbs
