// A ring of bytes whose memory is mapped twice in a row, so that whatever lies in it, or fits into it, is in one piece: no
// packet is ever split at the ring's end. Positions count up for ever; the byte of a position lies at position mod size.
// Only touched pages cost memory. It must not know what the bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace verbena::transport::tcp {

class mirrored_buffer {
 public:
  mirrored_buffer() = default;
  /// `bytes`: a power of two, of pages. An empty buffer (errno set) if the kernel refuses.
  explicit mirrored_buffer(std::size_t bytes) noexcept;
  mirrored_buffer(mirrored_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mirrored_buffer& operator=(mirrored_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~mirrored_buffer();

  explicit operator bool() const noexcept { return data_ != nullptr; }
  std::size_t size() const noexcept { return size_; }
  /// From here on `size()` bytes may be used.
  std::byte* at(std::uint64_t position) const noexcept { return data_ + (position & (size_ - 1)); }
  /// The first position from `position` on that lies at the buffer's beginning, which is warm.
  std::uint64_t next_start(std::uint64_t position) const noexcept {
    return (position + size_ - 1) & ~static_cast<std::uint64_t>(size_ - 1);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace verbena::transport::tcp
