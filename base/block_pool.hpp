// Memory for messages that arrived before their receive: blocks by powers of two, kept for reuse, so that after warm-up
// nothing is allocated. Large blocks go straight back to the heap. Not thread safe.
#pragma once

#include <bit>
#include <cstddef>
#include <new>
#include <utility>

namespace verbena::base {

class block_pool {
 public:
  block_pool() = default;
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;
  ~block_pool() {
    for (block*& head : free_)
      while (head != nullptr) ::operator delete(std::exchange(head, head->next));
  }

  std::byte* take(std::size_t bytes) {
    const std::size_t c = class_of(bytes);
    if (c < classes && free_[c] != nullptr) {
      block* found = std::exchange(free_[c], free_[c]->next);
      return reinterpret_cast<std::byte*>(found);
    }
    return static_cast<std::byte*>(::operator new(c < classes ? smallest << c : bytes));
  }
  /// `bytes` as it was asked for.
  void give_back(std::byte* memory, std::size_t bytes) noexcept {
    const std::size_t c = class_of(bytes);
    if (c >= classes) return ::operator delete(memory);
    free_[c] = new (memory) block{free_[c]};
  }

 private:
  struct block {
    block* next;
  };
  static constexpr std::size_t smallest = 64;
  static constexpr std::size_t classes = 11;  // 64 B to 64 KiB
  static std::size_t class_of(std::size_t bytes) noexcept {
    return bytes <= smallest ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1)) - 6;
  }
  block* free_[classes] = {};
};

}  // namespace verbena::base
