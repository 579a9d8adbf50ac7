// Layouts: messages whose bytes do not lie in a row in memory, such as a column of a matrix or some elements
// of an array. A layout says where the bytes of one message lie relative to a base pointer; the calls that
// take a pointer and a layout read or write them there, without a copy of the whole message in between.
#pragma once

#include <verbena/export.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

namespace verbena {

namespace runtime {
class layout_access;
struct shape;
}  // namespace runtime

/// An immutable value, cheap to copy; a started operation keeps its own copy, so a temporary will do.
///
///   const layout column = layout::strided(rows, sizeof(double), columns * sizeof(double));
///   world.send(&matrix[0][3], column, rank{1});
///
/// What counts is the order of the bytes: they are sent in the order of the blocks, and received in the order of the
/// blocks, so the two sides may have different layouts, or one of them none. Messages match by source and tag as ever; a
/// layout has the size of the bytes in it, without the gaps. Offsets and strides may be negative. Blocks may overlap
/// where they are sent from; a receive refuses that (MPI 4.0, section 4.1.11), since a byte would get two values.
class VERBENA_API layout {
 public:
  /// A part of a message: `bytes` bytes at `offset` bytes from the base pointer.
  struct block {
    std::ptrdiff_t offset = 0;
    std::size_t bytes = 0;
  };

  layout() noexcept = default;  ///< of no bytes
  /// That many bytes in a row: for the side of a sendrecv that has no gaps.
  static layout contiguous(std::size_t bytes) noexcept;
  /// `count` blocks of `block_bytes` bytes, each `stride_bytes` behind the beginning of the one before (MPI_Type_vector
  /// with byte strides). Throws error{invalid_argument} if it is larger than memory can be.
  static layout strided(std::size_t count, std::size_t block_bytes, std::ptrdiff_t stride_bytes);
  /// The listed blocks in the list's order (MPI_Type_create_hindexed). The list is copied; empty blocks are left out.
  /// Throws error{invalid_argument} as strided does, std::bad_alloc.
  static layout indexed(std::span<const block> blocks);
  static layout indexed(std::initializer_list<block> blocks) {
    return indexed(std::span<const block>(blocks.begin(), blocks.size()));
  }

  /// Size of a message with this layout.
  std::size_t bytes() const noexcept { return bytes_; }
  /// True if some byte belongs to two blocks: to be sent only.
  bool overlapping() const noexcept;

 private:
  friend class runtime::layout_access;
  std::size_t bytes_ = 0;
  std::ptrdiff_t first_ = 0;                     // of the only block, if there is no shape
  std::shared_ptr<const runtime::shape> shape_;  // null: all bytes lie in a row
};

}  // namespace verbena
