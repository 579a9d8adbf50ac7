// The part of a rank's arena that is given out in pieces: collective blocks, verbena::memory(). The lists
// live in the owner's private memory (a crash of one rank cannot break another's allocator); what is given
// out is zero, because what comes back is made zero, whole pages by returning them to the kernel. Off the
// message path: first fit, ordered by place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace verbena::transport::shm {

class heap {
 public:
  /// Manages [offset, offset + bytes) of the segment at `base`, fresh from the kernel (zero).
  heap(std::byte* base, std::uint64_t offset, std::uint64_t bytes);

  /// Offset of `bytes` zero bytes, 64-byte aligned, page aligned from one page on; 0: exhausted.
  std::uint64_t allocate(std::uint64_t bytes);
  /// Gives back what allocate returned; whole pages go back to the kernel.
  void free(std::uint64_t offset) noexcept;

  std::uint64_t used() const noexcept { return used_; }

 private:
  std::byte* base_;
  std::map<std::uint64_t, std::uint64_t> free_;   ///< offset -> bytes, never adjacent
  std::map<std::uint64_t, std::uint64_t> taken_;  ///< offset -> bytes
  std::uint64_t used_ = 0;
};

}  // namespace verbena::transport::shm
