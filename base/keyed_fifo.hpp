// A hash multimap whose entries bring their own links and whose equal keys come out in the order they went in. Insertion,
// look-up of the first of a key, and removal are O(1); nothing is allocated except when the table of buckets doubles.
// The owner of an entry is somebody else. Not thread safe.
#pragma once

#include "base/intrusive_list.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbena::base {

/// Three words that name a queue; the user gives them meaning.
struct fifo_key {
  std::uint32_t a = 0;
  std::int32_t b = 0;
  std::int32_t c = 0;
  friend bool operator==(const fifo_key&, const fifo_key&) = default;

  std::uint64_t hash() const noexcept {
    std::uint64_t x = (std::uint64_t{static_cast<std::uint32_t>(b)} << 32 | static_cast<std::uint32_t>(c)) ^
                      (std::uint64_t{a} * 0x9e3779b97f4a7c15ULL);
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 32;
  }
};

/// One membership of an entry in one keyed_fifo; an entry may have several.
struct keyed_link : list_link {
  fifo_key key;
  void* owner = nullptr;
};

class keyed_fifo {
 public:
  keyed_fifo() : buckets_(8) {}

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  void insert(keyed_link& link, const fifo_key& key, void* owner) {
    if (size_ >= buckets_.size()) grow();
    link.key = key;
    link.owner = owner;
    bucket(key).push_back(link);
    ++size_;
  }
  /// The owner of the oldest entry with this key, or null.
  void* find(const fifo_key& key) noexcept {
    if (size_ == 0) return nullptr;
    for (auto& head = bucket(key); keyed_link * at : entries(head))
      if (at->key == key) return at->owner;
    return nullptr;
  }
  void remove(keyed_link& link) noexcept {
    link.unlink();
    --size_;
  }
  /// Calls visit(owner) for every entry, in no particular order; the visitor may remove the entry it is given.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& head : buckets_) head.for_each([&](keyed_link& link) { visit(link.owner); });
  }

 private:
  using chain = intrusive_list<keyed_link>;
  struct entry_range {
    list_link* head;
    struct iterator {
      list_link* at;
      keyed_link* operator*() const { return static_cast<keyed_link*>(at); }
      iterator& operator++() {
        at = at->next;
        return *this;
      }
      bool operator!=(const iterator& other) const { return at != other.at; }
    };
    iterator begin() const { return {head->next}; }
    iterator end() const { return {head}; }
  };
  static entry_range entries(chain& head) { return {&head.head()}; }

  chain& bucket(const fifo_key& key) noexcept { return buckets_[key.hash() & (buckets_.size() - 1)]; }
  void grow() {
    std::vector<chain> wider(buckets_.size() * 4);
    std::swap(wider, buckets_);
    // Bucket by bucket, front to back: entries of one key shared one bucket, so their order survives.
    for (chain& old : wider)
      while (!old.empty()) {
        keyed_link& link = old.pop_front();
        bucket(link.key).push_back(link);
      }
  }

  std::vector<chain> buckets_;  // a power of two
  std::size_t size_ = 0;
};

}  // namespace verbena::base
