// Point-to-point calls without a short way of their own: synchronous, both ways at once, probing, persistent.
#include "runtime/calls.hpp"
#include "runtime/request_access.hpp"

#include <verbena/communicator.hpp>

#include <cstring>
#include <memory>
#include <new>

namespace verbena {
namespace {

using runtime::check_receive;
using runtime::check_send;
using runtime::communicator_state;
using runtime::context_state;
using runtime::operation;
using runtime::peer;
using runtime::both_results;
using runtime::exchange;
using runtime::in_a_row;
using runtime::start_receive;

/// One look, or looks until something is there or nothing can come any more. `look` returns what it found.
template <class Look>
auto await(communicator_state& on, const char* call, rank from, tag label, Look&& look) {
  context_state& host = on.host();
  auto found = look();
  if (found) return found;
  errc why = errc::success;
  host.wait_for([&] {
    found = look();
    if (found) return true;
    why = from != any_source                ? host.engine().why_down(on.peer_of(from))
          : host.engine().any_failed_in(on.context()) ? errc::peer_failed
                                            : errc::success;
    if (why == errc::success) return false;
    found = look();  // it may have come right before
    return true;
  });
  if (!found) runtime::throw_probe_error(on, call, why, from, label);
  return found;
}

std::optional<status> look_for(communicator_state& on, rank from, tag label) {
  const bool anybody = from == any_source;
  const peer source = anybody ? peer{} : on.peer_of(from);
  const auto seen = on.host().engine().peek(anybody ? nullptr : &source, {on.context(), from, label});
  if (!seen) return std::nullopt;
  return status{.source = seen->source, .label = seen->label, .bytes = seen->total};
}

}  // namespace

void communicator::ssend(const void* data, std::size_t bytes, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_send("ssend", *state_, data, bytes, to, label);
  operation op;
  state_->host().engine().send(op, state_->way_to(to), data, bytes, label, true);
  state_->host().wait(op);
  if (op.result.error != errc::success) runtime::throw_send_error(*state_, op.result.error, to, label, bytes);
}

request communicator::issend(const void* data, std::size_t bytes, verbena::rank to, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_send("issend", *state_, data, bytes, to, label);
  runtime::pooled_operation& p = state_->host().take_operation();
  p.is_receive = false;
  p.size = bytes;
  p.with = to;
  p.label = label;
  p.on = state_;
  state_->host().engine().send(p.op, state_->way_to(to), data, bytes, label, true);
  return runtime::request_access::pending(p);
}

status communicator::sendrecv(const void* out, std::size_t out_bytes, verbena::rank to, tag out_label,
                              void* in, std::size_t in_bytes, verbena::rank from, tag in_label) const {
  const runtime::entrance inside(state_->host().doors());
  check_send("sendrecv", *state_, out, out_bytes, to, out_label);
  check_receive("sendrecv", *state_, in, in_bytes, from, in_label);
  const both_results got = exchange(*state_, in_a_row(out, out_bytes), to, out_label,
                                    in_a_row(in, in_bytes), from, in_label);
  if (got.sent.error != errc::success)
    runtime::throw_send_error(*state_, got.sent.error, to, out_label, out_bytes);
  if (got.received.error != errc::success)
    runtime::throw_receive_error(*state_, got.received, from, in_label, in_bytes);
  return runtime::to_status(got.received);
}

status communicator::sendrecv_replace(void* data, std::size_t bytes, verbena::rank to, tag out_label,
                                      verbena::rank from, tag in_label) const {
  check_send("sendrecv_replace", *state_, data, bytes, to, out_label);
  check_receive("sendrecv_replace", *state_, data, bytes, from, in_label);
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (bytes != 0) std::memcpy(copy.get(), data, bytes);
  return sendrecv(copy.get(), bytes, to, out_label, data, bytes, from, in_label);
}

std::optional<status> communicator::iprobe(verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_receive("iprobe", *state_, nullptr, 0, from, label);
  if (auto found = look_for(*state_, from, label)) return found;
  state_->host().look_once();
  return look_for(*state_, from, label);
}

status communicator::probe(verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_receive("probe", *state_, nullptr, 0, from, label);
  return *await(*state_, "probe", from, label, [&] { return look_for(*state_, from, label); });
}

std::optional<matched_message> communicator::improbe(verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  const auto found = iprobe(from, label);
  if (!found) return std::nullopt;
  const bool anybody = from == any_source;
  const peer source = anybody ? peer{} : state_->peer_of(from);
  runtime::parcel* taken =
      state_->host().engine().take(anybody ? nullptr : &source, {state_->context(), from, label});
  state_->hold();
  return matched_message(*taken, *state_, *found);
}

matched_message communicator::mprobe(verbena::rank from, tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_receive("mprobe", *state_, nullptr, 0, from, label);
  static_cast<void>(await(*state_, "mprobe", from, label, [&] { return look_for(*state_, from, label); }));
  return std::move(*improbe(from, label));
}

persistent_request communicator::send_init(const void* data, std::size_t bytes, verbena::rank to,
                                           tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_send("send_init", *state_, data, bytes, to, label);
  return runtime::make_persistent(*state_, false, in_a_row(data, bytes), nullptr, to, label);
}

persistent_request communicator::recv_init(void* data, std::size_t bytes, verbena::rank from,
                                           tag label) const {
  const runtime::entrance inside(state_->host().doors());
  check_receive("recv_init", *state_, data, bytes, from, label);
  return runtime::make_persistent(*state_, true, in_a_row(data, bytes), nullptr, from, label);
}

}  // namespace verbena
