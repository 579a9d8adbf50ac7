// A request: the handle of something started and not yet waited for.
#pragma once

#include <verbena/error.hpp>
#include <verbena/export.hpp>
#include <verbena/types.hpp>

#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace verbena {

namespace runtime {
class request_access;
struct pending_work;
struct persistent_work;
}  // namespace runtime

/// What a receive got (MPI 4.0, section 3.2.5).
struct status {
  verbena::rank source{};  ///< who sent
  verbena::tag label{};    ///< its tag
  std::size_t bytes = 0;   ///< bytes written into the buffer
  errc error = errc::success;
};

/// Move-only. The buffer of the operation belongs to the library until `wait` returns or `test` says true.
/// Destroying a pending receive cancels it; destroying a pending send or collective waits for it; `detach`
/// frees the handle without waiting. One thread at a time.
class VERBENA_API request {
 public:
  request() = default;  ///< complete and empty (MPI_REQUEST_NULL)
  request(request&& other) noexcept
      : work_(std::exchange(other.work_, nullptr)),
        result_(other.result_),
        active_(std::exchange(other.active_, false)) {}
  request& operator=(request&& other) noexcept;
  ~request();

  /// Waits, making progress. Throws error: truncated, peer_failed, ... naming both sides and sizes; also if the
  /// operation was started by a form that does not throw and was refused.
  status wait();
  /// The same without throwing: look at status::error.
  status wait(std::nothrow_t) noexcept;
  /// Makes progress once; true if the operation is over (then `wait` returns at once).
  bool test();
  /// True if nothing is pending behind this handle.
  bool done() const noexcept;
  /// True if this stands for an operation that `wait` has not been called for: started, over or not. False for a
  /// default-constructed, moved-from, detached or waited-for request (MPI calls those inactive).
  bool active() const noexcept { return active_; }
  /// Gives up a receive that has not been matched (MPI 4.0, section 3.8.4). True: it is over and has touched nothing;
  /// `wait` returns a status with errc::cancelled and does not throw. False: it was matched, or it is a send or a
  /// collective, which cannot be given up; `wait` as if this had not been called.
  bool cancel() noexcept;
  /// Forgets the operation, which goes on; its buffer must live until it ends.
  void detach() noexcept;

 private:
  friend class runtime::request_access;
  runtime::pending_work* work_ = nullptr;  // null: complete, `result_` says how
  status result_;
  bool active_ = false;
};

// Many requests at once (MPI 4.0, section 3.7.5). Inactive requests among them are passed over. All make progress.
// The requests of one call belong to one context.

/// Waits for all, whatever becomes of some, and leaves all inactive. `statuses`, unless empty, gets one entry each.
/// Throws, after all are over, the error of the first that failed, saying how many did.
VERBENA_API void wait_all(std::span<request> requests, std::span<status> statuses = {});
/// The same without throwing: returns the status of the first that failed, or one with errc::success.
VERBENA_API status wait_all(std::span<request> requests, std::nothrow_t, std::span<status> statuses = {}) noexcept;

/// One that is over, by its place in the list.
struct completion {
  std::size_t index = 0;
  status result;
};

/// Waits for one and leaves it inactive; nothing if none is active. Fair: when several are over, calls in a row
/// favour none of them. Throws the error of the one it chose, saying which.
VERBENA_API std::optional<completion> wait_any(std::span<request> requests);
VERBENA_API std::optional<completion> wait_any(std::span<request> requests, std::nothrow_t) noexcept;
/// Waits until at least one is over and takes all that are, in the list's order; empty if none is active. Errors stand
/// in the statuses; the throwing form throws the first, when those that are over are inactive. The list needs memory:
/// std::bad_alloc may come of either form.
VERBENA_API std::vector<completion> wait_some(std::span<request> requests);
VERBENA_API std::vector<completion> wait_some(std::span<request> requests, std::nothrow_t);

/// Makes progress once. True if all are over: then as wait_all, otherwise nothing has changed.
VERBENA_API bool test_all(std::span<request> requests, std::span<status> statuses = {});
/// The same without throwing: nothing if not all are over, otherwise what wait_all returns.
VERBENA_API std::optional<status> test_all(std::span<request> requests, std::nothrow_t,
                                           std::span<status> statuses = {}) noexcept;
/// Makes progress once, and takes one that is over, as wait_any; nothing if none is.
VERBENA_API std::optional<completion> test_any(std::span<request> requests);
VERBENA_API std::optional<completion> test_any(std::span<request> requests, std::nothrow_t) noexcept;
/// Makes progress once, and takes all that are over, as wait_some; empty if none is.
VERBENA_API std::vector<completion> test_some(std::span<request> requests);
VERBENA_API std::vector<completion> test_some(std::span<request> requests, std::nothrow_t);

/// Arguments of an operation that is started many times (MPI 4.0, sections 3.9 and 6.13). Move-only. Each
/// `start` gives an ordinary request, which must have ended before the next one; a request still pending when
/// this goes ends by the rules of request.
class VERBENA_API persistent_request {
 public:
  persistent_request() = default;
  persistent_request(persistent_request&& other) noexcept
      : work_(std::exchange(other.work_, nullptr)), refused_(other.refused_) {}
  persistent_request& operator=(persistent_request&& other) noexcept;
  ~persistent_request();

  /// Throws error{invalid_argument} if the request of the last start has not ended, or there is nothing to
  /// start.
  request start();
  /// The same without throwing: what is wrong stands in the request's status.
  request start(std::nothrow_t) noexcept;
  /// False: there is nothing to start; of one that a form without exceptions made, `reason()` says why.
  explicit operator bool() const noexcept { return work_ != nullptr; }
  errc reason() const noexcept { return refused_; }

 private:
  friend class runtime::request_access;
  runtime::persistent_work* work_ = nullptr;
  errc refused_ = errc::success;
};

}  // namespace verbena
