#include "transport/tcp/mirrored_buffer.hpp"

#include "base/check.hpp"
#include "base/fd.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>

namespace verbena::transport::tcp {

mirrored_buffer::mirrored_buffer(std::size_t bytes) noexcept {
  base::check(std::has_single_bit(bytes) && bytes % static_cast<std::size_t>(::getpagesize()) == 0,
              "tcp: a buffer whose size is no power of two, or no whole pages");
  const base::unique_fd memory{::memfd_create("verbena-tcp", MFD_CLOEXEC)};
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return;
  void* const room =
      ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return;
  auto* const first = static_cast<std::byte*>(room);
  for (std::byte* const half : {first, first + bytes})
    if (::mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.get(), 0) == MAP_FAILED) {
      ::munmap(room, 2 * bytes);
      return;
    }
  ::madvise(room, 2 * bytes, MADV_DONTFORK);  // a forked child must not write into it
  data_ = first;
  size_ = bytes;
}

mirrored_buffer::~mirrored_buffer() {
  if (data_ != nullptr) ::munmap(data_, 2 * size_);
}

}  // namespace verbena::transport::tcp
