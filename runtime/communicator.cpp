// The calls of a communicator: argument checks, the short ways of blocking calls, and the words of their errors.
#include "runtime/context_state.hpp"
#include "runtime/request_access.hpp"

#include <fmt/format.h>
#include <verbena/communicator.hpp>

namespace verbena {
namespace {

using runtime::communicator_state;
using runtime::context_state;
using runtime::operation;

void check_label(const char* call, tag label, bool wildcard) {
  if (label.value < 0 && !(wildcard && label == any_tag))
    throw error(errc::invalid_argument, fmt::format("{}: tag {} is not in 0..2147483647", call, label.value));
}

void check_rank(const char* call, const communicator_state& on, rank r, bool wildcard) {
  if (!on.holds(r) && !(wildcard && r == any_source))
    throw error(errc::invalid_argument,
                fmt::format("{}: rank {} is not in this communicator (0..{})", call, r.value, on.size() - 1));
}

void check_buffer(const char* call, const void* data, std::size_t bytes) {
  if (data == nullptr && bytes != 0)
    throw error(errc::invalid_argument, fmt::format("{}: the buffer is a null pointer, the size {} B", call, bytes));
}

void start_receive(communicator_state& on, operation& op, void* data, std::size_t bytes, rank from, tag label) {
  const bool anybody = from == any_source;
  const runtime::peer source = anybody ? runtime::peer{} : on.peer_of(from);
  on.host().engine().receive(op, anybody ? nullptr : &source, {on.context(), from, label}, data, bytes);
}

}  // namespace

rank communicator::rank() const noexcept { return state_->self(); }
int communicator::size() const noexcept { return state_->size(); }
runtime::collective_port& communicator::port() const noexcept { return *state_; }

void communicator::send(const void* data, std::size_t bytes, verbena::rank to, tag label) const {
  check_rank("send", *state_, to, false);
  check_label("send", label, false);
  check_buffer("send", data, bytes);
  context_state& host = state_->host();
  if (host.engine().send_at_once(state_->way_to(to), data, bytes, label)) return;
  operation op;
  host.engine().send(op, state_->way_to(to), data, bytes, label);
  host.wait(op);
  if (op.result.error != errc::success) runtime::throw_send_error(*state_, op.result.error, to, label, bytes);
}

status communicator::recv(void* data, std::size_t bytes, verbena::rank from, tag label) const {
  check_rank("recv", *state_, from, true);
  check_label("recv", label, true);
  check_buffer("recv", data, bytes);
  context_state& host = state_->host();
  operation op;
  if (from != any_source && host.engine().express_allowed() && !host.engine().peer_down(state_->peer_of(from))) {
    host.receive_express(*state_, op, data, bytes, from, label);
  } else {
    start_receive(*state_, op, data, bytes, from, label);
  }
  host.wait(op);
  const status got = runtime::to_status(op.result);
  if (got.error != errc::success) runtime::throw_receive_error(*state_, op.result, from, label, bytes);
  return got;
}

request communicator::isend(const void* data, std::size_t bytes, verbena::rank to, tag label) const {
  check_rank("isend", *state_, to, false);
  check_label("isend", label, false);
  check_buffer("isend", data, bytes);
  context_state& host = state_->host();
  if (host.engine().send_at_once(state_->way_to(to), data, bytes, label))
    return runtime::request_access::completed({.source = rank(), .label = label, .bytes = bytes});
  runtime::pooled_operation& p = host.take_operation();
  p.is_receive = false;
  p.size = bytes;
  p.with = to;
  p.label = label;
  p.on = state_;
  host.engine().send(p.op, state_->way_to(to), data, bytes, label);
  return runtime::request_access::pending(p);
}

request communicator::irecv(void* data, std::size_t bytes, verbena::rank from, tag label) const {
  check_rank("irecv", *state_, from, true);
  check_label("irecv", label, true);
  check_buffer("irecv", data, bytes);
  runtime::pooled_operation& p = state_->host().take_operation();
  p.is_receive = true;
  p.size = bytes;
  p.with = from;
  p.label = label;
  p.on = state_;
  start_receive(*state_, p.op, data, bytes, from, label);
  return runtime::request_access::pending(p);
}

}  // namespace verbena
