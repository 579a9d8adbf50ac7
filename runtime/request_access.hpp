// How the runtime makes request handles, and words what went wrong with an operation. Internal.
#pragma once

#include "runtime/context_state.hpp"

#include <verbena/request.hpp>

namespace verbena::runtime {

class request_access {
 public:
  static request completed(const status& result) noexcept {
    request r;
    r.result_ = result;
    r.active_ = true;
    return r;
  }
  /// `work.host` is set.
  static request pending(pending_work& work) noexcept {
    request r;
    r.work_ = &work;
    r.active_ = true;
    return r;
  }
  static context_state* host(const request& r) noexcept { return r.work_ != nullptr ? r.work_->host : nullptr; }
  /// An operation that was not even started.
  static request refused(errc why) noexcept {
    status failed;
    failed.error = why;
    return completed(failed);
  }
  static persistent_request never(errc why) noexcept {
    persistent_request r;
    r.refused_ = why;
    return r;
  }
  static persistent_request persistent(persistent_work& work) noexcept {
    persistent_request r;
    r.work_ = &work;
    return r;
  }
};

inline status to_status(const transport::outcome& o) noexcept {
  return {o.source, o.label, o.bytes, o.error};
}

[[noreturn]] void throw_send_error(const communicator_state& on, errc why, rank to, tag label,
                                   std::size_t bytes);
[[noreturn]] void throw_receive_error(const communicator_state& on, const transport::outcome& got, rank from,
                                      tag label, std::size_t bytes);
[[noreturn]] void throw_probe_error(const communicator_state& on, const char* call, errc why, rank from, tag label);

}  // namespace verbena::runtime
