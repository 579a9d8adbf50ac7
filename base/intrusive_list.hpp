// Doubly linked list whose links live in the elements: the owner of an element is somebody else, linking
// allocates nothing, and an element can leave in O(1) without knowing its list. Not thread safe.
#pragma once

namespace verbena::base {

struct list_link {
  list_link* next = this;
  list_link* prev = this;

  list_link() = default;
  list_link(const list_link&) = delete;
  list_link& operator=(const list_link&) = delete;

  bool linked() const noexcept { return next != this; }
  void unlink() noexcept {
    prev->next = next;
    next->prev = prev;
    next = prev = this;
  }
};

/// A list of T, where T derives from list_link (through Tag-less single inheritance: one list at a time).
template <class T>
class intrusive_list {
 public:
  bool empty() const noexcept { return !head_.linked(); }
  list_link& head() noexcept { return head_; }
  T& front() noexcept { return static_cast<T&>(*head_.next); }
  T& back() noexcept { return static_cast<T&>(*head_.prev); }
  void push_back(T& item) noexcept {
    list_link& link = item;
    link.prev = head_.prev;
    link.next = &head_;
    head_.prev->next = &link;
    head_.prev = &link;
  }
  T& pop_front() noexcept {
    T& item = front();
    item.list_link::unlink();
    return item;
  }
  /// Calls `visit(T&)` for each element; the visitor may unlink the element it is given, and no other.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (list_link* at = head_.next; at != &head_;) {
      list_link* following = at->next;
      visit(static_cast<T&>(*at));
      at = following;
    }
  }

 private:
  list_link head_;
};

}  // namespace verbena::base
