// The point-to-point calls that take a base pointer and a layout. One whose bytes lie in a row is the plain call.
#include "runtime/calls.hpp"
#include "runtime/layout_access.hpp"
#include "runtime/quietly.hpp"

#include <verbena/communicator.hpp>

#include <utility>

namespace verbena {
namespace {

using runtime::communicator_state;
using runtime::layout_access;
using runtime::quietly;
using runtime::quietly_started;
using runtime::user_memory;

user_memory source(const char* call, const communicator_state& on, const void* base, const layout& form,
                   rank to, tag label) {
  runtime::check_send(call, on, nullptr, 0, to, label);
  return layout_access::source(call, base, form);
}

user_memory room(const char* call, const communicator_state& on, void* base, const layout& form, rank from,
                 tag label) {
  runtime::check_receive(call, on, nullptr, 0, from, label);
  return layout_access::room(call, base, form);
}

/// An operation that keeps the layout until it has ended.
runtime::pooled_operation& operation_of(communicator_state& on, bool is_receive, const layout& form,
                                        rank with, tag label) {
  runtime::pooled_operation& p = on.host().take_operation();
  p.is_receive = is_receive;
  p.size = form.bytes();
  p.with = with;
  p.label = label;
  p.on = &on;
  p.form = layout_access::shared(form);
  return p;
}

request start_send(communicator_state& on, const user_memory& data, const layout& form, rank to, tag label,
                   bool synchronous) {
  if (!on.record_of(to).outgoing.covers(data.bytes)) on.host().progress();  // budget may be free again
  runtime::pooled_operation& p = operation_of(on, false, form, to, label);
  on.host().engine().send(p.op, on.way_to(to), data.data, data.bytes, label, synchronous, data.form);
  return runtime::request_access::pending(p);
}

}  // namespace

void communicator::send(const void* base, const layout& form, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  const user_memory data = source("send", *state_, base, form, to, label);
  const auto write = [&](std::byte* at) { runtime::read_piece(data, 0, at, data.bytes); };
  if (!state_->host().engine().send_at_once(state_->way_to(to), data.bytes, label, write))
    runtime::send_patiently(*state_, data, to, label);
}

void communicator::ssend(const void* base, const layout& form, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  start_send(*state_, source("ssend", *state_, base, form, to, label), form, to, label, true).wait();
}

status communicator::recv(void* base, const layout& form, verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  return runtime::receive_patiently(*state_, room("recv", *state_, base, form, from, label), from, label);
}

request communicator::isend(const void* base, const layout& form, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  return start_send(*state_, source("isend", *state_, base, form, to, label), form, to, label, false);
}

request communicator::issend(const void* base, const layout& form, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  return start_send(*state_, source("issend", *state_, base, form, to, label), form, to, label, true);
}

request communicator::irecv(void* base, const layout& form, verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  const user_memory into = room("irecv", *state_, base, form, from, label);
  runtime::pooled_operation& p = operation_of(*state_, true, form, from, label);
  runtime::start_receive(*state_, p.op, into.data, into.bytes, from, label, into.form);
  return runtime::request_access::pending(p);
}

status communicator::sendrecv(const void* out, const layout& out_form, verbena::rank to, tag out_label,
                              void* in, const layout& in_form, verbena::rank from, tag in_label) const {
  const runtime::entrance inside(state_->host().doors());
  const user_memory data = source("sendrecv", *state_, out, out_form, to, out_label);
  const user_memory into = room("sendrecv", *state_, in, in_form, from, in_label);
  const runtime::both_results got = runtime::exchange(*state_, data, to, out_label, into, from, in_label);
  if (got.sent.error != errc::success)
    runtime::throw_send_error(*state_, got.sent.error, to, out_label, data.bytes);
  if (got.received.error != errc::success)
    runtime::throw_receive_error(*state_, got.received, from, in_label, into.bytes);
  return runtime::to_status(got.received);
}

persistent_request communicator::send_init(const void* base, const layout& form, verbena::rank to,
                                           tag label) const {
  const runtime::entrance inside(state_->host().doors());
  const user_memory data = source("send_init", *state_, base, form, to, label);
  return runtime::make_persistent(*state_, false, data, layout_access::shared(form), to, label);
}

persistent_request communicator::recv_init(void* base, const layout& form, verbena::rank from,
                                           tag label) const {
  const runtime::entrance inside(state_->host().doors());
  const user_memory into = room("recv_init", *state_, base, form, from, label);
  return runtime::make_persistent(*state_, true, into, layout_access::shared(form), from, label);
}

status communicator::send(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                          tag label) const noexcept {
  return quietly([&] {
    send(base, form, to, label);
    return status{.source = rank(), .label = label, .bytes = form.bytes()};
  });
}

status communicator::ssend(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                           tag label) const noexcept {
  return quietly([&] {
    ssend(base, form, to, label);
    return status{.source = rank(), .label = label, .bytes = form.bytes()};
  });
}

status communicator::recv(std::nothrow_t, void* base, const layout& form, verbena::rank from,
                          tag label) const noexcept {
  return irecv(std::nothrow, base, form, from, label).wait(std::nothrow);
}

request communicator::isend(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                            tag label) const noexcept {
  return quietly_started([&] { return isend(base, form, to, label); });
}

request communicator::issend(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                             tag label) const noexcept {
  return quietly_started([&] { return issend(base, form, to, label); });
}

request communicator::irecv(std::nothrow_t, void* base, const layout& form, verbena::rank from,
                            tag label) const noexcept {
  return quietly_started([&] { return irecv(base, form, from, label); });
}

status communicator::sendrecv(std::nothrow_t, const void* out, const layout& out_form, verbena::rank to,
                              tag out_label, void* in, const layout& in_form, verbena::rank from,
                              tag in_label) const noexcept {
  return quietly([&] {
    const runtime::entrance inside(state_->host().doors());
    const user_memory data = source("sendrecv", *state_, out, out_form, to, out_label);
    const user_memory into = room("sendrecv", *state_, in, in_form, from, in_label);
    const runtime::both_results got = runtime::exchange(*state_, data, to, out_label, into, from, in_label);
    status result = runtime::to_status(got.received);
    if (got.sent.error != errc::success) result.error = got.sent.error;
    return result;
  });
}

persistent_request communicator::send_init(std::nothrow_t, const void* base, const layout& form,
                                           verbena::rank to, tag label) const noexcept {
  return quietly([&] { return send_init(base, form, to, label); }, runtime::request_access::never);
}

persistent_request communicator::recv_init(std::nothrow_t, void* base, const layout& form, verbena::rank from,
                                           tag label) const noexcept {
  return quietly([&] { return recv_init(base, form, from, label); }, runtime::request_access::never);
}

}  // namespace verbena
