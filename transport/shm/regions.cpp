#include "transport/shm/regions.hpp"

#include <atomic>

namespace verbena::transport::shm {

remote_key region_table::add(buffer local) {
  remote_key key;
  if (local.kind != memory_kind::host) return key;
  std::uint32_t slot = never_used_;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (never_used_ == registration_slots) {
    return key;
  } else {
    ++never_used_;
  }
  registration& entry = own_[slot];
  // atomic_ref: a peer with a revoked key may be looking
  const auto address = reinterpret_cast<std::uint64_t>(local.data);
  std::atomic_ref(entry.address).store(address, std::memory_order_relaxed);
  std::atomic_ref(entry.bytes).store(local.size, std::memory_order_relaxed);
  const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;  // odd: valid
  entry.generation.store(generation, std::memory_order_release);                          // the range first
  key.address = address;
  key.size = local.size;
  key.keys[0] = local_index_;
  key.keys[1] = slot;
  key.handle = generation;
  return key;
}

void region_table::remove(const remote_key& key) noexcept {
  own_[key.keys[1]].generation.store(key.handle + 1, std::memory_order_release);  // even: nobody's
  free_.push_back(key.keys[1]);
}

bool region_table::allows(std::byte* base, const places& where, std::uint32_t owner, const remote_key& key,
                          std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (key.keys[0] != owner || key.keys[1] >= registration_slots || key.handle % 2 == 0) return false;
  registration& entry = table(base, where, owner)[key.keys[1]];
  // acquire: pairs with add, the range of this generation is visible
  if (entry.generation.load(std::memory_order_acquire) != key.handle) return false;
  const std::uint64_t size = std::atomic_ref(entry.bytes).load(std::memory_order_relaxed);
  return std::atomic_ref(entry.address).load(std::memory_order_relaxed) == key.address && offset <= size &&
         bytes <= size - offset;
}

}  // namespace verbena::transport::shm
