// Copying a few bytes without a call: what the message path does most. Larger copies are memcpy's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbena::base {

/// Copies `bytes` bytes between buffers that do not overlap.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes > 8 && bytes <= 16) {  // two moves that overlap in the middle
    std::uint64_t head, tail;
    std::memcpy(&head, from, 8);
    std::memcpy(&tail, from + bytes - 8, 8);
    std::memcpy(to, &head, 8);
    std::memcpy(to + bytes - 8, &tail, 8);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace verbena::base
