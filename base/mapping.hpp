// Owner of one shared mapping of a descriptor (the node's segment). The descriptor may be closed while it is
// mapped.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace verbena::base {

class mapping {
 public:
  mapping() = default;
  /// Maps `bytes` of `fd` read-write and shared; an empty mapping (errno set) if the kernel refuses.
  static mapping shared(int fd, std::size_t bytes) noexcept {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return at == MAP_FAILED ? mapping{} : mapping{static_cast<std::byte*>(at), bytes};
  }
  mapping(mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  mapping(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace verbena::base
