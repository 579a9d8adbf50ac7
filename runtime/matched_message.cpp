// Messages taken out of matching.
#include "runtime/calls.hpp"
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

request matched_message::irecv(void* data, std::size_t bytes) {
  if (parcel_ == nullptr)
    throw error(errc::invalid_argument, "recv: this matched message was received already");
  if (data == nullptr && bytes != 0) runtime::refuse_buffer("recv", bytes);
  const runtime::entrance inside(on_->host().doors());
  runtime::pooled_operation& p = on_->host().take_operation();
  p.is_receive = true;
  p.size = bytes;
  p.with = found_.source;
  p.label = found_.label;
  p.on = on_;
  on_->let_go();  // the request keeps it
  on_->host().engine().accept(p.op, *std::exchange(parcel_, nullptr), data, bytes);
  return runtime::request_access::pending(p);
}

status matched_message::recv(void* data, std::size_t bytes) {
  return irecv(data, bytes).wait();
}

}  // namespace verbena
