#include "runtime/node_memory.hpp"

#include "runtime/context_state.hpp"

#include <verbena/memory.hpp>

#include <algorithm>
#include <new>

namespace verbena {
namespace runtime {

/// Vouched for until it comes back, so that fabrics may keep what registering it cost.
void* node_memory::do_allocate(std::size_t bytes, std::size_t alignment) {
  const entrance inside(doors_);
  void* const at = find_room(bytes, alignment);
  fabric_.vouch(at, bytes);
  return at;
}

void* node_memory::find_room(std::size_t bytes, std::size_t alignment) {
  constexpr std::size_t line = 64, page = 4096;  // what the segment aligns to: a page from one page on
  if (alignment <= page) {
    const std::size_t wanted = alignment <= line ? std::max<std::size_t>(bytes, 1) : std::max(bytes, page);
    if (const std::uint64_t offset = fabric_.allocate_shared(wanted); offset != 0)
      return fabric_.shared_memory(offset, wanted).data();
  }
  return ::operator new (bytes, std::align_val_t{alignment});
}

void node_memory::do_deallocate(void* at, std::size_t, std::size_t alignment) {
  const entrance inside(doors_);
  fabric_.forget(at);
  if (const std::uint64_t offset = fabric_.shared_offset(at); offset != 0) return fabric_.free_shared(offset);
  ::operator delete (at, std::align_val_t{alignment});
}

}  // namespace runtime

std::pmr::memory_resource& memory(const context& of) noexcept {
  return of.state().memory();
}

}  // namespace verbena
