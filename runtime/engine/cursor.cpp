#include "runtime/engine/cursor.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace verbena::runtime {

cursor::cursor(const shape& of, std::byte* base, std::size_t at) noexcept
    : of_(of), base_(base), position_(at) {
  base::check(at <= of.bytes, "a cursor behind the end of its message");
  if (of.pieces.empty()) {
    index_ = at / of.block;
    inside_ = at % of.block;
    return;
  }
  // The last block that begins at or before this byte; the first one begins at 0.
  const auto behind =
      std::upper_bound(of.pieces.begin(), of.pieces.end(), at,
                       [](std::size_t byte, const shape::piece& p) { return byte < p.before; });
  index_ = static_cast<std::size_t>(behind - of.pieces.begin()) - 1;
  inside_ = at - of.pieces[index_].before;
}

std::size_t cursor::length_of(std::size_t index) const noexcept {
  if (of_.pieces.empty()) return of_.block;
  const std::size_t end = index + 1 < of_.pieces.size() ? of_.pieces[index + 1].before : of_.bytes;
  return end - of_.pieces[index].before;
}

std::span<std::byte> cursor::next(std::size_t most) noexcept {
  const std::size_t rest = std::min(most, of_.bytes - position_);
  if (rest == 0) return {};
  const std::size_t length = length_of(index_);
  const std::ptrdiff_t offset =
      of_.pieces.empty() ? static_cast<std::ptrdiff_t>(index_) * of_.stride : of_.pieces[index_].offset;
  const std::span<std::byte> run{base_ + offset + static_cast<std::ptrdiff_t>(inside_),
                                 std::min(length - inside_, rest)};
  position_ += run.size();
  inside_ += run.size();
  if (inside_ == length) {
    ++index_;
    inside_ = 0;
  }
  return run;
}

void cursor::read(std::byte* to, std::size_t bytes) noexcept {
  while (bytes != 0) {
    const std::span<std::byte> run = next(bytes);
    base::check(!run.empty(), "more bytes read than the message has");
    base::copy_bytes(to, run.data(), run.size());
    to += run.size();
    bytes -= run.size();
  }
}

void cursor::write(const std::byte* from, std::size_t bytes) noexcept {
  while (bytes != 0) {
    const std::span<std::byte> run = next(bytes);
    base::check(!run.empty(), "more bytes written than the message has");
    base::copy_bytes(run.data(), from, run.size());
    from += run.size();
    bytes -= run.size();
  }
}

}  // namespace verbena::runtime
