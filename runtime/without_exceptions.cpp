// The point-to-point calls that take std::nothrow.
#include "runtime/calls.hpp"
#include "runtime/quietly.hpp"

#include <verbena/communicator.hpp>

namespace verbena {

using runtime::both_results;
using runtime::check_receive;
using runtime::check_send;
using runtime::exchange;
using runtime::operation;
using runtime::quietly;
using runtime::quietly_started;
using runtime::start_receive;

status communicator::send(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                          tag label) const noexcept {
  return quietly([&] {
    send(data, bytes, to, label);
    return status{.source = rank(), .label = label, .bytes = bytes};
  });
}

status communicator::ssend(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                           tag label) const noexcept {
  return quietly([&] {
    ssend(data, bytes, to, label);
    return status{.source = rank(), .label = label, .bytes = bytes};
  });
}

status communicator::recv(std::nothrow_t, void* data, std::size_t bytes, verbena::rank from,
                          tag label) const noexcept {
  return quietly([&] {
    const runtime::entrance inside(state_->host().doors());
    check_receive("recv", *state_, data, bytes, from, label);
    operation op;
    start_receive(*state_, op, data, bytes, from, label);
    state_->host().wait(op);
    return runtime::to_status(op.result);
  });
}

status communicator::sendrecv(std::nothrow_t, const void* out, std::size_t out_bytes, verbena::rank to,
                              tag out_label, void* in, std::size_t in_bytes, verbena::rank from,
                              tag in_label) const noexcept {
  return quietly([&] {
    const runtime::entrance inside(state_->host().doors());
    check_send("sendrecv", *state_, out, out_bytes, to, out_label);
    check_receive("sendrecv", *state_, in, in_bytes, from, in_label);
    const both_results got = exchange(*state_, runtime::in_a_row(out, out_bytes), to, out_label,
                                    runtime::in_a_row(in, in_bytes), from, in_label);
    status result = runtime::to_status(got.received);
    if (got.sent.error != errc::success) result.error = got.sent.error;
    return result;
  });
}

status communicator::sendrecv_replace(std::nothrow_t, void* data, std::size_t bytes, verbena::rank to,
                                      tag out_label, verbena::rank from, tag in_label) const noexcept {
  return quietly([&] { return sendrecv_replace(data, bytes, to, out_label, from, in_label); });
}

request communicator::isend(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                            tag label) const noexcept {
  return quietly_started([&] { return isend(data, bytes, to, label); });
}

request communicator::issend(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                             tag label) const noexcept {
  return quietly_started([&] { return issend(data, bytes, to, label); });
}

request communicator::irecv(std::nothrow_t, void* data, std::size_t bytes, verbena::rank from,
                            tag label) const noexcept {
  return quietly_started([&] { return irecv(data, bytes, from, label); });
}

persistent_request communicator::send_init(std::nothrow_t, const void* data, std::size_t bytes,
                                           verbena::rank to, tag label) const noexcept {
  return quietly([&] { return send_init(data, bytes, to, label); }, runtime::request_access::never);
}

persistent_request communicator::recv_init(std::nothrow_t, void* data, std::size_t bytes, verbena::rank from,
                                           tag label) const noexcept {
  return quietly([&] { return recv_init(data, bytes, from, label); }, runtime::request_access::never);
}

status communicator::probe(std::nothrow_t, verbena::rank from, tag label) const noexcept {
  return quietly([&] { return probe(from, label); });
}

std::optional<status> communicator::iprobe(std::nothrow_t, verbena::rank from, tag label) const noexcept {
  return quietly([&] { return iprobe(from, label); },
                 [](errc why) {
                   std::optional<status> failed(std::in_place);
                   failed->error = why;
                   return failed;
                 });
}

matched_message communicator::mprobe(std::nothrow_t, verbena::rank from, tag label) const noexcept {
  return quietly([&] { return mprobe(from, label); }, [](errc why) { return matched_message(why); });
}

std::optional<matched_message> communicator::improbe(std::nothrow_t, verbena::rank from,
                                                     tag label) const noexcept {
  return quietly([&] { return improbe(from, label); },
                 [](errc why) { return std::optional<matched_message>(matched_message(why)); });
}

}  // namespace verbena
