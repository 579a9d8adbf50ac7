// Making layouts: checks, and the plainest form of what is asked for.
#include "runtime/engine/cursor.hpp"

#include <fmt/format.h>
#include <verbena/error.hpp>
#include <verbena/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace verbena {
namespace {

/// More than half of all addresses is no object's extent (and no difference of two pointers).
[[noreturn]] void refuse_size(const char* maker) {
  throw error(errc::invalid_argument,
              fmt::format("layout::{}: reaches further than {} bytes, which is more than memory can be",
                          maker, PTRDIFF_MAX));
}

/// The end of a block that begins at `offset`; its bytes fit a pointer difference, too.
std::ptrdiff_t end_of(const char* maker, std::ptrdiff_t offset, std::size_t bytes) {
  std::ptrdiff_t end = 0;
  if (bytes > PTRDIFF_MAX || __builtin_add_overflow(offset, static_cast<std::ptrdiff_t>(bytes), &end))
    refuse_size(maker);
  return end;
}

bool overlap(std::vector<layout::block> blocks) {
  const auto by_offset = [](const layout::block& a, const layout::block& b) { return a.offset < b.offset; };
  if (!std::is_sorted(blocks.begin(), blocks.end(), by_offset))
    std::sort(blocks.begin(), blocks.end(), by_offset);
  for (std::size_t i = 1; i < blocks.size(); ++i)
    if (blocks[i].offset < blocks[i - 1].offset + static_cast<std::ptrdiff_t>(blocks[i - 1].bytes))
      return true;
  return false;
}

}  // namespace

layout layout::contiguous(std::size_t bytes) noexcept {
  layout made;
  made.bytes_ = bytes;
  return made;
}

layout layout::strided(std::size_t count, std::size_t block_bytes, std::ptrdiff_t stride_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, block_bytes, &bytes) || bytes > PTRDIFF_MAX) refuse_size("strided");
  if (count <= 1 || block_bytes == 0 || stride_bytes == static_cast<std::ptrdiff_t>(block_bytes))
    return contiguous(bytes);
  std::ptrdiff_t last = 0;
  if (__builtin_mul_overflow(static_cast<std::ptrdiff_t>(count - 1), stride_bytes, &last))
    refuse_size("strided");
  end_of("strided", last, block_bytes);
  const std::size_t step = stride_bytes < 0 ? std::size_t{0} - static_cast<std::size_t>(stride_bytes)
                                            : static_cast<std::size_t>(stride_bytes);
  layout made = contiguous(bytes);
  auto form = std::make_shared<runtime::shape>();
  form->bytes = bytes;
  form->block = block_bytes;
  form->stride = stride_bytes;
  form->overlapping = step < block_bytes;
  made.shape_ = std::move(form);
  return made;
}

layout layout::indexed(std::span<const block> blocks) {
  std::vector<block> joined;  // those that follow each other in memory as one
  std::size_t bytes = 0;
  for (const block& b : blocks) {
    if (b.bytes == 0) continue;
    end_of("indexed", b.offset, b.bytes);
    bytes += b.bytes;
    if (bytes > PTRDIFF_MAX) refuse_size("indexed");
    if (!joined.empty() &&
        b.offset == joined.back().offset + static_cast<std::ptrdiff_t>(joined.back().bytes))
      joined.back().bytes += b.bytes;
    else
      joined.push_back(b);
  }
  layout made = contiguous(bytes);
  if (joined.size() <= 1) {
    made.first_ = joined.empty() ? 0 : joined.front().offset;
    return made;
  }
  auto form = std::make_shared<runtime::shape>();
  form->bytes = bytes;
  form->pieces.reserve(joined.size());
  std::size_t before = 0;
  for (const block& b : joined) {
    form->pieces.push_back({before, b.offset});
    before += b.bytes;
  }
  form->overlapping = overlap(std::move(joined));
  made.shape_ = std::move(form);
  return made;
}

bool layout::overlapping() const noexcept {
  return shape_ != nullptr && shape_->overlapping;
}

}  // namespace verbena
