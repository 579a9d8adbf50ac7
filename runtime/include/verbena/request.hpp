// A request: the handle of something started and not yet waited for.
#pragma once

#include <verbena/error.hpp>
#include <verbena/export.hpp>
#include <verbena/types.hpp>

#include <cstddef>
#include <utility>

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
  request(request&& other) noexcept : work_(std::exchange(other.work_, nullptr)), result_(other.result_) {}
  request& operator=(request&& other) noexcept;
  ~request();

  /// Waits, making progress. Throws error: truncated, peer_failed, ... naming both sides and sizes.
  status wait();
  /// The same without throwing: look at status::error.
  status wait(std::nothrow_t) noexcept;
  /// Makes progress once; true if the operation is over (then `wait` returns at once).
  bool test();
  /// True if nothing is pending behind this handle.
  bool done() const noexcept;
  /// Forgets the operation, which goes on; its buffer must live until it ends.
  void detach() noexcept;

 private:
  friend class runtime::request_access;
  runtime::pending_work* work_ = nullptr;  // null: complete, `result_` says how
  status result_;
};

/// Arguments of an operation that is started many times (MPI 4.0, sections 3.9 and 6.13). Move-only. Each
/// `start` gives an ordinary request, which must have ended before the next one; a request still pending when
/// this goes ends by the rules of request.
class VERBENA_API persistent_request {
 public:
  persistent_request() = default;
  persistent_request(persistent_request&& other) noexcept : work_(std::exchange(other.work_, nullptr)) {}
  persistent_request& operator=(persistent_request&& other) noexcept;
  ~persistent_request();

  /// Throws error{invalid_argument} if the request of the last start has not ended, or there is nothing to
  /// start.
  request start();

 private:
  friend class runtime::request_access;
  runtime::persistent_work* work_ = nullptr;
};

}  // namespace verbena
