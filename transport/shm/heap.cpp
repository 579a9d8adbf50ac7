#include "transport/shm/heap.hpp"

#include "base/check.hpp"
#include "transport/shm/layout.hpp"

#include <sys/mman.h>

#include <cstring>

namespace verbena::transport::shm {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

heap::heap(std::byte* base, std::uint64_t offset, std::uint64_t bytes) : base_(base) {
  if (bytes > 0) free_.emplace(offset, bytes);
}

std::uint64_t heap::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > INT64_MAX) return 0;
  const std::uint64_t grain = bytes >= page_bytes ? page_bytes : line_bytes;
  const std::uint64_t size = round_up(bytes, grain);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, length] = *it;
    const std::uint64_t at = round_up(begin, grain);
    if (at - begin > length || length - (at - begin) < size) continue;
    free_.erase(it);
    if (at > begin) free_.emplace(begin, at - begin);
    if (at + size < begin + length) free_.emplace(at + size, begin + length - at - size);
    taken_.emplace(at, size);
    used_ += size;
    return at;
  }
  return 0;
}

void heap::free(std::uint64_t offset) noexcept {
  auto found = taken_.find(offset);
  base::check(found != taken_.end(), "memory of the segment is freed that was not given out");
  auto node = taken_.extract(found);
  std::uint64_t begin = node.key();
  std::uint64_t length = node.mapped();
  used_ -= length;
  // Punching the hole returns the pages; if the kernel refuses they stay and are reused.
  if (length < page_bytes || ::madvise(base_ + begin, length, MADV_REMOVE) != 0)
    std::memset(base_ + begin, 0, length);

  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + length == next->first) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += length;
      return;
    }
  }
  node.key() = begin;
  node.mapped() = length;
  free_.insert(std::move(node));
}

}  // namespace verbena::transport::shm
