// The calls of a communicator: argument checks, the short ways of blocking calls, and the words of their errors.
#include "runtime/calls.hpp"
#include "runtime/context_state.hpp"
#include "runtime/request_access.hpp"

#include <fmt/format.h>
#include <verbena/communicator.hpp>

namespace verbena {
namespace {

using runtime::check_receive;
using runtime::check_send;
using runtime::context_state;
using runtime::in_a_row;
using runtime::receive_patiently;
using runtime::send_patiently;
using runtime::start_receive;

}  // namespace

namespace runtime {

[[gnu::noinline]] void send_patiently(communicator_state& on, const user_memory& data, rank to, tag label) {
  context_state& host = on.host();
  runtime::engine& engine = host.engine();
  const envelope_route way = on.way_to(to);
  // Who only sends sees here that budget is free again.
  if (!way.to.outgoing.covers(data.bytes)) host.progress();
  // A receiver that has no room now gets a moment to make some. After that a copy waits here in its stead, on the budget
  // the receiver granted: a send within it does not wait for a receiver that sleeps.
  if (engine.may_keep(way.to, data.bytes)) {
    if (host.try_for_a_moment(way.to.waiting.empty(), [&] { return engine.send_in_turn(way, data, label); })) return;
    if (engine.may_keep(way.to, data.bytes)) return engine.keep(way, data, label);
  }
  operation op;
  engine.send(op, way, data.data, data.bytes, label, false, data.form);
  host.wait(op);
  if (op.result.error != errc::success) throw_send_error(on, op.result.error, to, label, data.bytes);
}

[[gnu::noinline]] status receive_patiently(communicator_state& on, const user_memory& room, rank from, tag label) {
  operation op;
  start_receive(on, op, room.data, room.bytes, from, label, room.form);
  on.host().wait(op);
  const status got = to_status(op.result);
  if (got.error != errc::success) throw_receive_error(on, op.result, from, label, room.bytes);
  return got;
}

}  // namespace runtime

rank communicator::rank() const noexcept { return state_->self(); }
int communicator::size() const noexcept { return state_->size(); }
runtime::collective_port& communicator::port() const noexcept { return *state_; }

void communicator::send(const void* data, std::size_t bytes, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_send("send", *state_, data, bytes, to, label);
  if (!state_->host().engine().send_at_once(state_->way_to(to), data, bytes, label)) [[unlikely]]
    send_patiently(*state_, in_a_row(data, bytes), to, label);
}

status communicator::recv(void* data, std::size_t bytes, verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_receive("recv", *state_, data, bytes, from, label);
  context_state& host = state_->host();
  runtime::engine& engine = host.engine();
  if (from == any_source || !engine.next_allowed()) [[unlikely]]
    return receive_patiently(*state_, in_a_row(data, bytes), from, label);
  runtime::engine_peer& source = state_->record_of(from);
  const bool any = label == any_tag;
  const transport::envelope expected =
      runtime::wire::pack(runtime::wire::kind::eager, state_->context(), from.value, any ? 0 : label.value);
  const std::uint64_t mask = any ? 0xffffffffULL : ~0ULL;
  runtime::engine::arrival got;
  if (!host.take_next([&] {
        return engine.receive_next(source, expected, mask, static_cast<std::byte*>(data), bytes, got);
      })) [[unlikely]]
    return receive_patiently(*state_, in_a_row(data, bytes), from, label);
  if (got.total > bytes) [[unlikely]]
    runtime::throw_receive_error(*state_,
                                 {.source = from, .label = got.label, .bytes = bytes, .sent_bytes = got.total,
                                  .error = errc::truncated},
                                 from, label, bytes);
  return {.source = from, .label = got.label, .bytes = got.total};
}

request communicator::isend(const void* data, std::size_t bytes, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_send("isend", *state_, data, bytes, to, label);
  context_state& host = state_->host();
  if (host.engine().send_at_once(state_->way_to(to), data, bytes, label))
    return runtime::request_access::completed({.source = rank(), .label = label, .bytes = bytes});
  if (!state_->record_of(to).outgoing.covers(bytes)) host.progress();  // budget may be free again
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
  const runtime::entrance inside(state_->host().doors());
  check_receive("irecv", *state_, data, bytes, from, label);
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
