// Random layouts, and what they mean, byte by byte: the address of each byte of a message, found without the cursor.
#pragma once

#include <verbena/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace verbena::tests {

/// A layout beside the naive list of where its bytes lie, and memory for it with a pattern in the gaps.
class laid_out {
 public:
  /// `at`: for each byte of the message its offset from the base.
  laid_out(layout form, std::vector<std::ptrdiff_t> at) : form_(std::move(form)), at_(std::move(at)) {
    const auto [low, high] = std::minmax_element(at_.begin(), at_.end());
    constexpr std::ptrdiff_t margin = 32;
    first_ = (at_.empty() ? 0 : -std::min<std::ptrdiff_t>(*low, 0)) + margin;
    const std::ptrdiff_t end = at_.empty() ? 0 : std::max<std::ptrdiff_t>(*high + 1, 0);
    memory_.assign(static_cast<std::size_t>(first_ + end + margin), untouched);
  }

  const layout& form() const { return form_; }
  std::size_t size() const { return at_.size(); }
  std::byte* base() { return memory_.data() + first_; }
  std::byte& byte(std::size_t i) { return memory_[static_cast<std::size_t>(first_ + at_[i])]; }

  /// The message that it holds, gathered byte by byte.
  std::vector<std::byte> message() {
    std::vector<std::byte> all(size());
    for (std::size_t i = 0; i < size(); ++i) all[i] = byte(i);
    return all;
  }
  /// Every byte of the memory random: a sender.
  void fill(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::byte& b : memory_) b = static_cast<std::byte>(random());
  }
  /// True if the memory is what a receive of `got` leaves of untouched memory: its bytes, and nothing else.
  bool holds(const std::vector<std::byte>& got) {
    std::vector<std::byte> right(memory_.size(), untouched);
    for (std::size_t i = 0; i < got.size(); ++i) right[static_cast<std::size_t>(first_ + at_[i])] = got[i];
    return right == memory_;
  }

 private:
  static constexpr std::byte untouched{0xa5};

  layout form_;
  std::vector<std::ptrdiff_t> at_;
  std::ptrdiff_t first_ = 0;  ///< of the base in memory_
  std::vector<std::byte> memory_;
};

enum class layout_kind { in_a_row, forwards, backwards, listed, overlapping };

/// A layout of about `bytes` bytes: at least as many, less than one block more; of those listed exactly as many.
inline laid_out random_layout(std::mt19937_64& random, layout_kind kind, std::size_t bytes) {
  const auto up_to = [&](std::size_t most) { return static_cast<std::size_t>(random() % (most + 1)); };
  std::vector<std::ptrdiff_t> at;
  const auto append = [&](std::ptrdiff_t offset, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) at.push_back(offset + static_cast<std::ptrdiff_t>(i));
  };
  if (kind == layout_kind::in_a_row) {
    append(0, bytes);
    return {layout::contiguous(bytes), std::move(at)};
  }
  if (kind == layout_kind::listed) {
    std::vector<layout::block> blocks;
    const std::size_t longest = 1 + up_to(random() % 2 == 0 ? 40 : 3000);
    for (std::size_t left = bytes; left != 0;) {
      const std::size_t length = std::min(left, up_to(longest));  // some are empty
      blocks.push_back({0, length});
      left -= length;
    }
    // Places in random order, some of them neighbours, some before the base.
    std::vector<std::size_t> order(blocks.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    std::ptrdiff_t place = -static_cast<std::ptrdiff_t>(up_to(2 * bytes + 5));
    for (const std::size_t i : order) {
      blocks[i].offset = place;
      place += static_cast<std::ptrdiff_t>(blocks[i].bytes + (random() % 3 == 0 ? 0 : up_to(20)));
    }
    for (const layout::block& b : blocks) append(b.offset, b.bytes);
    return {layout::indexed(blocks), std::move(at)};
  }
  const std::size_t block =
      bytes == 0 ? up_to(8) : 1 + up_to(std::min<std::size_t>(bytes - 1, random() % 2 == 0 ? 16 : 5000));
  const std::size_t count = block == 0 ? up_to(5) : (bytes + block - 1) / block;
  auto stride = static_cast<std::ptrdiff_t>(block + up_to(24));
  if (kind == layout_kind::backwards) stride = -stride;
  if (kind == layout_kind::overlapping) stride = static_cast<std::ptrdiff_t>(up_to(block));
  for (std::size_t i = 0; i < count; ++i) append(static_cast<std::ptrdiff_t>(i) * stride, block);
  return {layout::strided(count, block, stride), std::move(at)};
}

}  // namespace verbena::tests
