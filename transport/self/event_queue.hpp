// What a process has sent to itself and not yet polled: packets and flags in posting order, in one ring of
// bytes that starts empty (thousands of contexts may never send to themselves), doubles, and never exceeds
// its bound. After the first round at full size nothing is allocated. It must not know operations or sinks.
#pragma once

#include "base/check.hpp"
#include "transport/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace verbena::transport::self {

class event_queue {
 public:
  enum class kind : std::uint32_t { packet = 1, flag = 2, skip = 3 };

  /// Head of a record; the payload follows, the next record starts 8-byte aligned.
  struct record {
    kind what = kind::skip;
    std::uint32_t size = 0;  ///< payload bytes
    envelope head;
    std::span<const std::byte> payload() const noexcept {
      return {reinterpret_cast<const std::byte*>(this + 1), size};
    }
  };
  static_assert(sizeof(record) == 24 && alignof(record) == 8);

  explicit event_queue(std::size_t most_bytes) noexcept : most_bytes_(most_bytes) {}

  bool empty() const noexcept { return head_ == tail_; }
  /// Running count of records ever added: lets a poll stop at what was there when it began.
  std::uint64_t added() const noexcept { return added_; }
  std::uint64_t removed() const noexcept { return removed_; }

  /// Room for one record with `size` payload bytes, entered with its head; null if the bound is reached. The
  /// caller fills the payload before the next call.
  std::byte* push(kind what, envelope head, std::size_t size) {
    const std::size_t need = bytes_of(size);
    while (!fits(need)) {
      if (capacity_ >= most_bytes_) return nullptr;
      grow();
    }
    if (tail_ % capacity_ + need > capacity_) skip_to_start();
    auto* at = new (bytes() + tail_ % capacity_) record{what, static_cast<std::uint32_t>(size), head};
    tail_ += need;
    ++added_;
    return reinterpret_cast<std::byte*>(at + 1);
  }

  /// The oldest record. Valid until `pop`; nothing may be pushed in between.
  const record& front() noexcept {
    if (at(head_).what == kind::skip) head_ += capacity_ - head_ % capacity_;
    return at(head_);
  }
  void pop() noexcept {
    head_ += bytes_of(front().size);
    ++removed_;
    if (empty()) head_ = tail_ = 0;  // the start is warm in the cache
  }

 private:
  static constexpr std::size_t first_bytes = 1024;
  static constexpr std::size_t bytes_of(std::size_t payload) noexcept {
    return sizeof(record) + (payload + 7) / 8 * 8;
  }

  std::byte* bytes() const noexcept { return reinterpret_cast<std::byte*>(storage_.get()); }
  const record& at(std::size_t position) const noexcept {
    return *reinterpret_cast<const record*>(bytes() + position % capacity_);
  }
  /// Records are contiguous: one that does not fit before the end wastes the rest of the ring.
  bool fits(std::size_t need) const noexcept {
    if (capacity_ == 0) return false;
    const std::size_t to_end = capacity_ - tail_ % capacity_;
    return tail_ - head_ + need + (need > to_end ? to_end : 0) <= capacity_;
  }
  /// The rest up to the end is at least 8 bytes, so the two words of a skip mark always fit.
  void skip_to_start() noexcept {
    const std::uint32_t mark[2] = {static_cast<std::uint32_t>(kind::skip), 0};
    std::memcpy(bytes() + tail_ % capacity_, mark, sizeof mark);
    tail_ += capacity_ - tail_ % capacity_;
  }
  void grow() {
    event_queue larger(most_bytes_);
    larger.capacity_ = capacity_ == 0 ? first_bytes : capacity_ * 2;
    larger.storage_ = std::make_unique<std::uint64_t[]>(larger.capacity_ / sizeof(std::uint64_t));
    while (!empty()) {
      const record& from = front();
      std::byte* to = larger.push(from.what, from.head, from.size);
      base::check(to != nullptr, "a larger queue holds less");
      std::memcpy(to, from.payload().data(), from.size);
      head_ += bytes_of(from.size);
    }
    storage_ = std::move(larger.storage_);
    capacity_ = larger.capacity_;
    head_ = larger.head_;
    tail_ = larger.tail_;
  }

  std::size_t most_bytes_;
  std::unique_ptr<std::uint64_t[]> storage_;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;  // running positions; modulo capacity_
  std::size_t tail_ = 0;
  std::uint64_t added_ = 0;
  std::uint64_t removed_ = 0;
};

}  // namespace verbena::transport::self
