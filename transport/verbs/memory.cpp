#include "transport/verbs/memory.hpp"

#include <sys/mman.h>

namespace verbena::transport::verbs {

ibv_mr* registrations::add(buffer local) {
  const int access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  ibv_mr* const mr = ibv_reg_mr(domain_, local.data, local.size, access);
  if (mr != nullptr) ranges_.emplace(reinterpret_cast<std::uintptr_t>(local.data), mr);
  return mr;
}

void registrations::remove(ibv_mr* which) noexcept {
  const auto [first, last] = ranges_.equal_range(reinterpret_cast<std::uintptr_t>(which->addr));
  for (auto at = first; at != last; ++at)
    if (at->second == which) {
      ranges_.erase(at);
      break;
    }
  ibv_dereg_mr(which);
}

ibv_mr* registrations::find(const std::byte* data, std::size_t size) const noexcept {
  constexpr int tries =
      8;  // registrations that begin before it and end too soon; then it is registered once more
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  auto at = ranges_.upper_bound(begin);
  for (int i = 0; i < tries && at != ranges_.begin(); ++i) {
    --at;
    const std::uintptr_t inside = begin - at->first;
    if (inside <= at->second->length && size <= at->second->length - inside) return at->second;
  }
  return nullptr;
}

std::uint32_t checksum_of(const remote_key& key) noexcept {
  std::uint64_t mixed = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t part :
       {key.address, key.size, std::uint64_t{key.keys[0]} << 32 | key.keys[1],
        std::uint64_t{key.kind}}) {  // finalizer of MurmurHash3 (Appleby, public domain)
    mixed ^= part;
    mixed *= 0xff51afd7ed558ccdULL;
    mixed ^= mixed >> 33;
    mixed *= 0xc4ceb9fe1a85ec53ULL;
    mixed ^= mixed >> 33;
  }
  const auto folded = static_cast<std::uint32_t>(mixed ^ mixed >> 32);
  return folded != 0 ? folded : 1;  // 0 says: no key
}

remote_key registrations::key_of(buffer local, const ibv_mr* mr) noexcept {
  remote_key key;
  key.address = reinterpret_cast<std::uintptr_t>(local.data);
  key.size = local.size;
  key.keys[0] = mr != nullptr ? mr->rkey : 0;
  key.keys[1] = ++serial_;
  key.kind = static_cast<std::uint8_t>(local.kind);
  key.handle = checksum_of(key);
  return key;
}

void region::deregister() noexcept {
  of_->remove(mr_);
}

void slot_pool::unmap::operator()(std::byte* memory) const noexcept {
  ::munmap(memory, bytes);
}

slot_pool::slot_pool(ibv_pd* domain, std::uint32_t count, std::size_t slot_bytes)
    : count_(count), slot_bytes_(slot_bytes) {
  const std::size_t bytes = count * slot_bytes;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = {static_cast<std::byte*>(memory), unmap{bytes}};
  const int access = IBV_ACCESS_LOCAL_WRITE;
  mr_.reset(ibv_reg_mr(domain, memory, bytes, access));
  free_.reserve(count);
  for (std::uint32_t i = count; i-- > 0;) free_.push_back(i);
}

}  // namespace verbena::transport::verbs
