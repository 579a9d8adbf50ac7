// Registrations that are kept for the next operation on the same memory: an interval map from ranges to whatever a fabric's
// registering returned, bounded by bytes and entries, the least recently used out first. Only memory that somebody vouches
// for is kept: who owns it promises to call `forget` before it lets go of it, so that no entry outlives its memory. It
// must not know devices, keys, or why something is registered. One thread at a time.
//
//   use ---- found ----------------------------> entry, one user more ... release
//     \---- not found: prepare (makes room) --> register --> keep -----^
#pragma once

#include "base/intrusive_list.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace verbena::transport {

/// Addresses from `begin` up to, not including, `end`.
struct memory_range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  std::uint64_t size() const noexcept { return end - begin; }
  bool empty() const noexcept { return begin >= end; }
  bool covers(const memory_range& other) const noexcept { return begin <= other.begin && other.end <= end; }
  bool overlaps(const memory_range& other) const noexcept { return begin < other.end && other.begin < end; }
};

struct region_counts {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;  ///< memory that nobody vouches for included
  std::uint64_t evictions = 0;
};

/// One kept registration. In a list of its cache, by list_link, while nobody uses it.
struct region_entry : base::list_link {
  memory_range where;
  void* what = nullptr;  ///< of the fabric's registering
  std::uint32_t users = 0;
  bool live = true;  ///< false: nobody finds it any more, and the last user's release drops it
};

class region_cache {
 public:
  struct bounds {
    std::uint64_t bytes = 0;  ///< 0: nothing is kept
    std::uint32_t entries = 0;
  };

  /// `drop` undoes a registration; it must not call back.
  region_cache(bounds most, std::function<void(void*)> drop);
  /// Drops everything, also what is still said to be in use.
  ~region_cache();
  region_cache(const region_cache&) = delete;
  region_cache& operator=(const region_cache&) = delete;

  /// This memory stays where it is until `forget`. Blocks do not overlap. Nothing happens if there is no memory for the note.
  void vouch(memory_range block) noexcept;
  /// The block that begins there is about to go: its entries are dropped, those in use by their last user.
  void forget(std::uintptr_t block) noexcept;

  /// The entry that covers the range, with one user more; or null. Counted as a hit or a miss.
  region_entry* use(memory_range wanted) noexcept;
  /// The same, not counted: for who holds it already and needs it once more.
  region_entry* find(memory_range wanted) noexcept;
  /// What is to be registered and handed to `keep` so that the range is covered; room is made for it. Empty: the range
  /// cannot be kept, for nobody vouches for it, or too much is in use.
  memory_range prepare(memory_range wanted) noexcept;
  /// Takes over a registration of what `prepare` said just now, with one user; null: it stays the caller's.
  region_entry* keep(memory_range prepared, void* what) noexcept;
  void release(region_entry& used) noexcept;
  /// Drops the one that was not used for the longest time. False: all are in use.
  bool evict() noexcept;

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint32_t entries() const noexcept { return entries_; }
  const region_counts& counts() const noexcept { return counts_; }

 private:
  using live_map = std::map<std::uintptr_t, std::unique_ptr<region_entry>>;

  memory_range block_of(const memory_range& wanted) const noexcept;
  live_map::iterator first_overlap(const memory_range& with) noexcept;
  live_map::iterator retire(live_map::iterator at) noexcept;
  void retire_overlaps(const memory_range& with) noexcept;
  void drop(region_entry& which) noexcept;

  bounds most_;
  std::function<void(void*)> drop_;
  std::map<std::uintptr_t, std::uintptr_t> blocks_;  ///< vouched for: begin, end
  live_map live_;                                    ///< by their begin; they never overlap
  base::intrusive_list<region_entry> idle_;          ///< live and without users, last used last
  base::intrusive_list<region_entry> retired_;       ///< not live, in use; owned by this list
  std::uint64_t bytes_ = 0;                          ///< of all that is registered, retired ones too
  std::uint32_t entries_ = 0;
  region_counts counts_;
};

}  // namespace verbena::transport
