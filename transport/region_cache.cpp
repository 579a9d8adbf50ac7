#include "transport/region_cache.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace verbena::transport {
namespace {

/// Blocks up to this size are registered whole: whoever sends one part of them sends the others soon.
constexpr std::uint64_t whole_block_bytes = std::uint64_t{1} << 20;
/// Of larger ones so much around what is wanted: neighbours share an entry.
constexpr std::uintptr_t grain_bytes = std::uintptr_t{64} << 10;

}  // namespace

region_cache::region_cache(bounds most, std::function<void(void*)> drop)
    : most_(most), drop_(std::move(drop)) {}

region_cache::~region_cache() {
  while (!retired_.empty()) {
    const std::unique_ptr<region_entry> last(&retired_.pop_front());
    drop_(last->what);
  }
  for (auto& [begin, entry] : live_) {
    if (entry->linked()) entry->unlink();
    drop_(entry->what);
  }
}

void region_cache::vouch(memory_range block) noexcept {
  if (block.empty() || most_.bytes == 0) return;
  try {
    blocks_[block.begin] = block.end;
  } catch (const std::exception&) {  // then it is registered per operation
  }
}

void region_cache::forget(std::uintptr_t block) noexcept {
  const auto at = blocks_.find(block);
  if (at == blocks_.end()) return;
  retire_overlaps({at->first, at->second});
  blocks_.erase(at);
}

region_entry* region_cache::find(memory_range wanted) noexcept {
  auto at = live_.upper_bound(wanted.begin);
  if (at == live_.begin()) return nullptr;
  region_entry& found = *std::prev(at)->second;
  if (!found.where.covers(wanted)) return nullptr;
  if (found.users++ == 0) found.unlink();
  return &found;
}

region_entry* region_cache::use(memory_range wanted) noexcept {
  region_entry* const found = find(wanted);
  ++(found != nullptr ? counts_.hits : counts_.misses);
  return found;
}

memory_range region_cache::block_of(const memory_range& wanted) const noexcept {
  const auto at = blocks_.upper_bound(wanted.begin);
  if (wanted.empty() || at == blocks_.begin()) return {};
  const memory_range block{std::prev(at)->first, std::prev(at)->second};
  return block.covers(wanted) ? block : memory_range{};
}

region_cache::live_map::iterator region_cache::first_overlap(const memory_range& with) noexcept {
  const auto at = live_.upper_bound(with.begin);
  if (at != live_.begin() && std::prev(at)->second->where.overlaps(with)) return std::prev(at);
  return at != live_.end() && at->second->where.overlaps(with) ? at : live_.end();
}

memory_range region_cache::prepare(memory_range wanted) noexcept {
  const memory_range block = block_of(wanted);
  if (block.empty() || most_.entries == 0) return {};
  memory_range planned = block;
  if (block.size() > whole_block_bytes) {
    planned.begin = std::max(block.begin, wanted.begin / grain_bytes * grain_bytes);
    planned.end = block.end - wanted.end < grain_bytes
                      ? block.end
                      : (wanted.end + grain_bytes - 1) / grain_bytes * grain_bytes;
    // Entries that it touches are replaced by one that covers them too, or two that alternate would replace each other
    // for ever. They do not overlap each other, so one look is enough.
    memory_range joined = planned;
    for (auto at = first_overlap(planned); at != live_.end() && at->second->where.overlaps(planned); ++at) {
      joined.begin = std::min(joined.begin, at->second->where.begin);
      joined.end = std::max(joined.end, at->second->where.end);
    }
    if (joined.size() <= most_.bytes) planned = joined;
  }
  if (planned.size() > most_.bytes) return {};
  retire_overlaps(planned);
  while (bytes_ + planned.size() > most_.bytes || entries_ >= most_.entries)
    if (!evict()) return {};
  return planned;
}

region_entry* region_cache::keep(memory_range prepared, void* what) noexcept {
  base::check(first_overlap(prepared) == live_.end(), "region cache: an entry that overlaps another");
  try {
    auto made = std::make_unique<region_entry>();
    made->where = prepared;
    made->what = what;
    made->users = 1;
    region_entry& entry = *made;
    live_.emplace(prepared.begin, std::move(made));
    bytes_ += prepared.size();
    ++entries_;
    return &entry;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void region_cache::release(region_entry& used) noexcept {
  base::check(used.users != 0, "region cache: released by nobody");
  if (--used.users != 0) return;
  if (used.live) return idle_.push_back(used);
  const std::unique_ptr<region_entry> last(&used);
  used.unlink();
  drop(used);
}

bool region_cache::evict() noexcept {
  if (idle_.empty()) return false;
  ++counts_.evictions;
  retire(live_.find(idle_.front().where.begin));
  return true;
}

/// Nobody finds it from now on. Returns the next one.
region_cache::live_map::iterator region_cache::retire(live_map::iterator at) noexcept {
  std::unique_ptr<region_entry> entry = std::move(at->second);
  const auto next = live_.erase(at);
  if (entry->users != 0) {
    entry->live = false;
    retired_.push_back(*entry.release());
  } else {
    entry->unlink();
    drop(*entry);
  }
  return next;
}

void region_cache::retire_overlaps(const memory_range& with) noexcept {
  for (auto at = first_overlap(with); at != live_.end() && at->second->where.overlaps(with);) at = retire(at);
}

void region_cache::drop(region_entry& which) noexcept {
  bytes_ -= which.where.size();
  --entries_;
  drop_(which.what);
}

}  // namespace verbena::transport
