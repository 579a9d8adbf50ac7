// Where the bytes of a message lie in user memory, and the way along them: a cursor stands at some byte of the message,
// reads or writes from there on, and can be set up again at any byte, so that a message can move in pieces of any size.
// It must not know of messages, protocols or fabrics.
#pragma once

#include "base/copy.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace verbena::runtime {

/// Blocks in memory, in the order of a message's bytes. Immutable once made (runtime/layout.cpp).
struct shape {
  /// One of the listed blocks; it ends where the next one begins, the last where the message ends.
  struct piece {
    std::size_t before = 0;  ///< bytes of the message before it
    std::ptrdiff_t offset = 0;
  };

  std::size_t bytes = 0;      ///< of the message; not 0
  std::size_t block = 0;      ///< strided: bytes of each block
  std::ptrdiff_t stride = 0;  ///< strided: from block to block
  std::vector<piece> pieces;  ///< the listed blocks; empty: strided
  bool overlapping = false;
};

/// User memory that a message is read from or written to: `bytes` bytes at `data`, or the blocks of `form` relative to it.
struct user_memory {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  const shape* form = nullptr;  ///< null: in a row
};

class cursor {
 public:
  /// Stands at byte `at` of the message (at most its size). `of` outlives the cursor.
  cursor(const shape& of, std::byte* base, std::size_t at) noexcept;

  std::size_t position() const noexcept { return position_; }
  /// The next bytes that lie in a row, at most `most` of them; moves behind them. Empty at the end.
  std::span<std::byte> next(std::size_t most) noexcept;
  /// Copies the next `bytes` bytes, not more than there are.
  void read(std::byte* to, std::size_t bytes) noexcept;
  void write(const std::byte* from, std::size_t bytes) noexcept;

 private:
  std::size_t length_of(std::size_t index) const noexcept;

  const shape& of_;
  std::byte* base_;
  std::size_t position_;
  std::size_t index_ = 0;   ///< of the block it stands in
  std::size_t inside_ = 0;  ///< bytes of that block behind it
};

/// Copies a piece of the message that begins at its byte `at`.
inline void read_piece(const user_memory& from, std::size_t at, std::byte* to, std::size_t bytes) noexcept {
  if (from.form == nullptr) [[likely]]
    return base::copy_bytes(to, from.data + at, bytes);
  cursor(*from.form, from.data, at).read(to, bytes);
}
inline void write_piece(const user_memory& to, std::size_t at, const std::byte* from,
                        std::size_t bytes) noexcept {
  if (to.form == nullptr) [[likely]]
    return base::copy_bytes(to.data + at, from, bytes);
  cursor(*to.form, to.data, at).write(from, bytes);
}

}  // namespace verbena::runtime
