// What the calls of a communicator share: the checks of their arguments, and how a receive is posted, how both
// halves of an exchange run.
// Internal.
#pragma once

#include "runtime/context_state.hpp"

#include <fmt/format.h>
#include <verbena/error.hpp>

namespace verbena::runtime {

inline user_memory in_a_row(const void* data, std::size_t bytes) noexcept {
  return {static_cast<std::byte*>(const_cast<void*>(data)), bytes};  // a send's is only read
}

// The checks are inlined into every call, their sentences are not.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_label(const char* call, tag label) {
  throw error(errc::invalid_argument, fmt::format("{}: tag {} is not in 0..2147483647", call, label.value));
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_rank(const char* call, const communicator_state& on,
                                                               rank r) {
  throw error(errc::invalid_argument,
              fmt::format("{}: rank {} is not in this communicator (0..{})", call, r.value, on.size() - 1));
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_buffer(const char* call, std::size_t bytes) {
  throw error(errc::invalid_argument,
              fmt::format("{}: the buffer is a null pointer, the size {} B", call, bytes));
}

inline void check_send(const char* call, const communicator_state& on, const void* data, std::size_t bytes,
                       rank to, tag label) {
  if (!on.holds(to)) [[unlikely]]
    refuse_rank(call, on, to);
  if (label.value < 0) [[unlikely]]
    refuse_label(call, label);
  if (data == nullptr && bytes != 0) [[unlikely]]
    refuse_buffer(call, bytes);
}

inline void check_receive(const char* call, const communicator_state& on, const void* data, std::size_t bytes,
                          rank from, tag label) {
  if (!on.holds(from) && from != any_source) [[unlikely]]
    refuse_rank(call, on, from);
  if (label.value < 0 && label != any_tag) [[unlikely]]
    refuse_label(call, label);
  if (data == nullptr && bytes != 0) [[unlikely]]
    refuse_buffer(call, bytes);
}

inline void start_receive(communicator_state& on, operation& op, void* data, std::size_t bytes, rank from,
                          tag label, const shape* form = nullptr) {
  const bool anybody = from == any_source;
  const peer source = anybody ? peer{} : on.peer_of(from);
  on.host().engine().receive(op, anybody ? nullptr : &source, {on.context(), from, label}, data, bytes, form);
}

/// A blocking send, or receive, that the short ways could not do: what did not fit one packet, or found no room.
void send_patiently(communicator_state& on, const user_memory& data, rank to, tag label);
status receive_patiently(communicator_state& on, const user_memory& room, rank from, tag label);

/// A send or receive to be started by the result. `form`: keeps `data.form`.
persistent_request make_persistent(communicator_state& on, bool is_receive, const user_memory& data,
                                   std::shared_ptr<const shape> form, rank with, tag label);

struct both_results {
  transport::outcome sent, received;
};

/// Both halves, to the end of both.
inline both_results exchange(communicator_state& on, const user_memory& out, rank to, tag out_label,
                             const user_memory& in, rank from, tag in_label) {
  operation receiving, sending;
  start_receive(on, receiving, in.data, in.bytes, from, in_label, in.form);
  context_state& host = on.host();
  host.engine().send(sending, on.way_to(to), out.data, out.bytes, out_label, false, out.form);
  host.wait(sending);
  host.wait(receiving);
  return {sending.result, receiving.result};
}

}  // namespace verbena::runtime
