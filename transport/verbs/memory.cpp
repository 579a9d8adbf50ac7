#include "transport/verbs/memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace verbena::transport::verbs {
namespace {

memory_range range_of(buffer local) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(local.data);
  return {begin, begin + local.size};
}

}  // namespace

registrations::registrations(ibv_pd* domain, region_cache::bounds kept)
    : domain_(domain), kept_(kept, [](void* mr) { ibv_dereg_mr(static_cast<ibv_mr*>(mr)); }) {}

registrations::~registrations() {
  for (auto& [begin, entry] : ranges_) ibv_dereg_mr(static_cast<ibv_mr*>(entry->what));
}

/// What is kept and not in use makes room for what is needed.
ibv_mr* registrations::pin(memory_range range) noexcept {
  const int access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  for (;;) {
    ibv_mr* const mr = ibv_reg_mr(domain_, reinterpret_cast<void*>(range.begin), range.size(), access);
    if (mr != nullptr || (errno != ENOMEM && errno != EAGAIN && errno != ENOSPC)) return mr;
    if (!kept_.evict()) return nullptr;
  }
}

hold registrations::add(buffer local) {
  auto made = std::make_unique<region_entry>();
  made->where = range_of(local);
  made->what = pin(made->where);
  made->users = 1;
  if (made->what == nullptr) return {};
  return {ranges_.emplace(made->where.begin, std::move(made))->second.get(), false};
}

hold registrations::take(buffer local) {
  const memory_range wanted = range_of(local);
  if (region_entry* const found = kept_.use(wanted)) return {found, true};
  if (const memory_range planned = kept_.prepare(wanted); !planned.empty())
    if (ibv_mr* const mr = pin(planned)) {
      if (region_entry* const made = kept_.keep(planned, mr)) return {made, true};
      ibv_dereg_mr(mr);
    }
  return add(local);
}

hold registrations::take_again(buffer local) {
  constexpr int tries = 8;  // ones that begin before it and end too soon; then it is registered once more
  const memory_range wanted = range_of(local);
  if (region_entry* const found = kept_.find(wanted)) return {found, true};
  auto at = ranges_.upper_bound(wanted.begin);
  for (int i = 0; i < tries && at != ranges_.begin(); ++i) {
    region_entry& candidate = *(--at)->second;
    if (!candidate.where.covers(wanted)) continue;
    ++candidate.users;
    return {&candidate, false};
  }
  return take(local);
}

void registrations::give_back(const hold& held) noexcept {
  if (!held) return;
  if (held.kept) return kept_.release(*held.entry);
  if (--held.entry->users != 0) return;
  ibv_dereg_mr(held.mr());
  const auto [first, last] = ranges_.equal_range(held.entry->where.begin);
  for (auto at = first; at != last; ++at)
    if (at->second.get() == held.entry) {
      ranges_.erase(at);
      break;
    }
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

remote_key registrations::key_of(buffer local, const hold& held) noexcept {
  remote_key key;
  key.address = reinterpret_cast<std::uintptr_t>(local.data);
  key.size = local.size;
  key.keys[0] = held ? held.mr()->rkey : 0;
  key.keys[1] = ++serial_;
  key.kind = static_cast<std::uint8_t>(local.kind);
  key.handle = checksum_of(key);
  return key;
}

void region::deregister() noexcept {
  of_->give_back({entry_, kept_});
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
