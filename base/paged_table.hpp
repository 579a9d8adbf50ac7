// A table indexed by peer whose entries come to be on first use, 64 at a time, and then stay in place: a context that
// talks to few of thousands of peers pays for few. Not thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace verbena::base {

template <class Entry>
class paged_table {
 public:
  explicit paged_table(std::size_t size) : pages_((size + page_size - 1) / page_size) {}

  /// The entry, made now if it was never asked for. `index` < size.
  Entry& operator[](std::uint32_t index) {
    auto& page = pages_[index / page_size];
    if (page == nullptr) [[unlikely]]
      page = std::make_unique<std::array<Entry, page_size>>();
    return (*page)[index % page_size];
  }
  /// The entry if its page exists, or null.
  const Entry* find(std::uint32_t index) const noexcept {
    const auto& page = pages_[index / page_size];
    return page == nullptr ? nullptr : &(*page)[index % page_size];
  }

 private:
  static constexpr std::size_t page_size = 64;
  std::vector<std::unique_ptr<std::array<Entry, page_size>>> pages_;
};

}  // namespace verbena::base
