#include "runtime/engine/message.hpp"

#include <utility>

namespace verbena::runtime {

message& message_pool::take() {
  if (free_.empty()) {
    message& fresh = all_.emplace_back();
    fresh.slot = static_cast<std::uint32_t>(all_.size() - 1);
    if (free_.capacity() < all_.size()) free_.reserve(2 * all_.size());  // release must not allocate
    free_.push_back(&fresh);
  }
  message& m = *free_.back();
  free_.pop_back();
  m.live = true;
  ++live_;
  return m;
}

void message_pool::release(message& m) noexcept {
  m.unlink();
  m.live = false;
  ++m.generation;
  m.op = nullptr;
  m.data = nullptr;
  m.form = nullptr;
  m.size = m.total = m.moved = 0;
  m.with = nullptr;
  m.at = step::idle;
  m.acknowledged = m.refused = false;
  m.remote = {};
  m.key = {};
  m.region = {};
  m.moving.on_done = nullptr;
  free_.push_back(&m);
  --live_;
}

message* message_pool::find(wire::handle h) noexcept {
  if (h.slot >= all_.size()) return nullptr;
  message& m = all_[h.slot];
  return m.live && m.generation == h.generation ? &m : nullptr;
}

parcel& parcel_pool::take() {
  if (free_ == nullptr) return all_.emplace_back();
  return *std::exchange(free_, free_->next_free);
}

void parcel_pool::release(parcel& p) noexcept {
  p.data = nullptr;
  p.announced = p.refused = false;
  p.total = p.arrived = 0;
  p.charge = 0;
  p.waits = {};
  p.next_free = std::exchange(free_, &p);
}

}  // namespace verbena::runtime
