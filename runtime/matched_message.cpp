// Messages taken out of matching.
#include "runtime/layout_access.hpp"
#include "runtime/quietly.hpp"
#include "runtime/request_access.hpp"

#include <verbena/matched_message.hpp>

#include <utility>

namespace verbena {

matched_message& matched_message::operator=(matched_message&& other) noexcept {
  if (this != &other) {
    matched_message old(std::move(*this));
    parcel_ = std::exchange(other.parcel_, nullptr);
    on_ = other.on_;
    found_ = other.found_;
  }
  return *this;
}

matched_message::~matched_message() {
  if (parcel_ == nullptr) return;
  // Received into no room, by nobody.
  request nobody = irecv(nullptr, 0);
  nobody.detach();
}

request matched_message::irecv(void* base, const layout& form) {
  if (parcel_ == nullptr)
    throw error(errc::invalid_argument, "recv: this matched message was received already");
  const runtime::user_memory room = runtime::layout_access::room("recv", base, form);
  const runtime::entrance inside(on_->host().doors());
  runtime::pooled_operation& p = on_->host().take_operation();
  p.is_receive = true;
  p.size = room.bytes;
  p.with = found_.source;
  p.label = found_.label;
  p.on = on_;
  p.form = runtime::layout_access::shared(form);
  on_->let_go();  // the request keeps it
  on_->host().engine().accept(p.op, *std::exchange(parcel_, nullptr), room.data, room.bytes, room.form);
  return runtime::request_access::pending(p);
}

request matched_message::irecv(void* data, std::size_t bytes) {
  return irecv(data, layout::contiguous(bytes));
}

status matched_message::recv(void* data, std::size_t bytes) {
  return irecv(data, bytes).wait();
}
status matched_message::recv(void* base, const layout& form) {
  return irecv(base, form).wait();
}

request matched_message::irecv(std::nothrow_t, void* base, const layout& form) noexcept {
  return runtime::quietly_started([&] { return irecv(base, form); });
}
request matched_message::irecv(std::nothrow_t, void* data, std::size_t bytes) noexcept {
  return irecv(std::nothrow, data, layout::contiguous(bytes));
}

status matched_message::recv(std::nothrow_t, void* base, const layout& form) noexcept {
  return irecv(std::nothrow, base, form).wait(std::nothrow);
}
status matched_message::recv(std::nothrow_t, void* data, std::size_t bytes) noexcept {
  return irecv(std::nothrow, data, bytes).wait(std::nothrow);
}

}  // namespace verbena
