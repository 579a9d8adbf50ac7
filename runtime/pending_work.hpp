// What stands behind a request handle until it is over: a send, a receive, a one-sided transfer, a
// collective. Whoever starts the work owns its memory and gives the handle out (collective_port::hand_out,
// request_access); the handle waits, cancels, and says when it lets go. It must not know what the work does.
#pragma once

#include "transport/operation.hpp"

namespace verbena::runtime {

using transport::operation;

class context_state;

struct pending_work {
  operation op;  ///< done when the work is over; its hook belongs to the handle (request::detach)
  context_state* host = nullptr;  ///< whose progress moves it; set by whoever gives the handle out

  /// Gives the work up if nothing has come of it yet (a receive without a match): true if `op` is done now.
  virtual bool cancel() noexcept { return false; }
  /// Words what `op.result.error` says, and throws. `op` is done with an error.
  [[noreturn]] virtual void raise() const = 0;
  /// `op` is done and the handle gone: the memory is its owner's again. Last call.
  virtual void release() noexcept = 0;

 protected:
  ~pending_work() = default;
};

/// Work that is started again and again with the same arguments (MPI 4.0, section 3.9).
struct persistent_work : pending_work {
  bool in_flight = false;  ///< a request of `start` has not ended
  bool kept = true;        ///< the persistent_request is there

  /// Begins once more; not while in flight. Errors arrive in `op`; throws only for want of memory.
  virtual void start() = 0;
  /// Not kept any more: what is in flight was the last start.
  virtual void drop() noexcept {}
  /// Neither in flight nor kept: frees itself.
  virtual void destroy() noexcept = 0;

  void release() noexcept final {
    in_flight = false;
    if (!kept) destroy();
  }

 protected:
  ~persistent_work() = default;
};

}  // namespace verbena::runtime
