#include "runtime/shared_blocks.hpp"

#include <algorithm>
#include <atomic>

namespace verbena::runtime {

/// One line, apart from the block: a communicator that is freed without a collective has touched no page of
/// it.
struct alignas(64) shared_blocks::card {
  std::uint64_t offset;  ///< of the block; written before its name is told
  std::uint64_t bytes;
  std::uint32_t members;
  std::atomic<std::uint32_t> left;  ///< members that are done
  std::byte reserved[40];
};

shared_blocks::card& shared_blocks::at(std::uint64_t name) const noexcept {
  return *reinterpret_cast<card*>(fabric_.shared_memory(name, sizeof(card)).data());
}

std::uint64_t shared_blocks::take(std::uint32_t members, std::size_t head_bytes, std::size_t member_bytes,
                                  std::size_t least_bytes) {
  static_assert(sizeof(card) == 64);
  if (++taken_since_ > own_.size() / 2 + 16) collect();
  own_.reserve(own_.size() + 1);
  const std::uint64_t name = fabric_.allocate_shared(sizeof(card));
  if (name == 0) return 0;
  // The first communicators get what they can use; where thousands are alive, each gets what it needs.
  const std::uint64_t fair = fabric_.shared_room() / 64;
  const std::uint64_t each =
      std::clamp<std::uint64_t>(fair / members, least_bytes, std::max(member_bytes, least_bytes));
  const std::uint64_t bytes = head_bytes + members * each;
  const std::uint64_t block = fabric_.allocate_shared(bytes);
  if (block == 0) {
    fabric_.free_shared(name);
    return 0;
  }
  card& c = at(name);
  c.offset = block;
  c.bytes = bytes;
  c.members = members;
  own_.push_back(name);
  return name;
}

void shared_blocks::give_back(std::uint64_t name) noexcept {
  const std::uint64_t block = at(name).offset;
  fabric_.free_shared(block);
  fabric_.free_shared(name);
}

void shared_blocks::take_back(std::uint64_t name) noexcept {
  own_.erase(std::find(own_.begin(), own_.end(), name));
  give_back(name);
}

node_block shared_blocks::find(std::uint64_t name) const noexcept {
  const card& c = at(name);
  const std::span<std::byte> memory = fabric_.shared_memory(c.offset, c.bytes);
  return {memory.data(), memory.size()};
}

void shared_blocks::leave(std::uint64_t name) noexcept {
  at(name).left.fetch_add(1, std::memory_order_release);  // after our last access to the block
}

void shared_blocks::collect() noexcept {
  taken_since_ = 0;
  std::erase_if(own_, [&](std::uint64_t name) {
    const card& c = at(name);
    // acquire: pairs with leave, nobody's accesses come later
    if (c.left.load(std::memory_order_acquire) != c.members) return false;
    give_back(name);
    return true;
  });
}

}  // namespace verbena::runtime
