// Something that was started and will end: a send, a receive, a put, a collective. Type-erased and intrusive:
// the caller owns the memory and keeps it alive and in place until `done()`; nobody allocates or copies one.
// Used by every layer, so that completion means the same thing everywhere.
//
//   idle --(started)--> pending --(complete)--> done
//
// `complete` runs on the thread that makes progress. The hook runs once, last, and may restart or free the
// operation; it must not call back into the fabric or engine that completed it except to post (posting inside
// `poll` is deferred).
#pragma once

#include "base/check.hpp"
#include "base/intrusive_list.hpp"

#include <verbena/error.hpp>
#include <verbena/types.hpp>

#include <cstddef>
#include <cstdint>

namespace verbena::transport {

/// How an operation ended, as far as it applies: who sent, with which label, how many bytes arrived.
struct outcome {
  rank source{};
  tag label{};
  std::size_t bytes = 0;       ///< bytes written into the buffer
  std::size_t sent_bytes = 0;  ///< size of the message as sent; larger than `bytes` only if truncated
  errc error = errc::success;
};

struct operation : base::list_link {
  enum class state : std::uint8_t { idle, pending, done };
  using hook = void (*)(operation&) noexcept;

  outcome result;
  hook on_done = nullptr;  ///< called once, after the state is `done`; null: nobody cares
  void* owner = nullptr;   ///< for the hook's use
  void* runner = nullptr;  ///< while pending: for the use of whoever runs it (its record of the work)

  bool done() const noexcept { return state_ == state::done; }
  bool pending() const noexcept { return state_ == state::pending; }
  void start() noexcept {
    base::check(state_ != state::pending, "an operation is started again while it is pending");
    state_ = state::pending;
    result = {};
  }
  void complete(errc error = errc::success) noexcept {
    state_ = state::done;
    result.error = error;
    if (on_done != nullptr) on_done(*this);
  }

  /// Whoever ran it has let go of it without an end (an offer withdrawn): as if it had not been started.
  void take_back() noexcept { state_ = state::idle; }

 private:
  state state_ = state::idle;
};

}  // namespace verbena::transport
