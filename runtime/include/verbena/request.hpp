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
struct pooled_operation;
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
      : operation_(std::exchange(other.operation_, nullptr)), result_(other.result_) {}
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
  runtime::pooled_operation* operation_ = nullptr;  // null: complete, `result_` says how
  status result_;
};

}  // namespace verbena
