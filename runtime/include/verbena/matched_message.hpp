// A message that mprobe or improbe has taken out of matching: nobody else can receive it.
#pragma once

#include <verbena/export.hpp>
#include <verbena/layout.hpp>
#include <verbena/message_types.hpp>
#include <verbena/request.hpp>
#include <verbena/types.hpp>

#include <cstddef>
#include <new>
#include <ranges>
#include <utility>

namespace verbena {

namespace runtime {
class communicator_state;
struct parcel;
}  // namespace runtime

/// Move-only; received once, by recv or irecv (MPI 4.0, section 3.8.3). One that is destroyed without having
/// been received is thrown away: its sender has sent it all the same. It must be gone before its communicator
/// and context. One thread at a time, as for the communicator.
class VERBENA_API matched_message {
 public:
  matched_message() = default;  ///< no message
  matched_message(matched_message&& other) noexcept
      : parcel_(std::exchange(other.parcel_, nullptr)), on_(other.on_), found_(other.found_) {}
  matched_message& operator=(matched_message&& other) noexcept;
  ~matched_message();

  explicit operator bool() const noexcept { return parcel_ != nullptr; }
  /// Why there is no message, of one that a form without exceptions returned.
  errc reason() const noexcept { return found_.error; }
  verbena::rank source() const noexcept { return found_.source; }
  verbena::tag label() const noexcept { return found_.label; }
  /// Size of the message.
  std::size_t bytes() const noexcept { return found_.bytes; }

  /// Receives it. Less room than `bytes()` is an error (truncated), as for any receive; throws
  /// error{invalid_argument} if it was received already.
  status recv(void* data, std::size_t bytes);
  request irecv(void* data, std::size_t bytes);
  status recv(void* base, const layout& form);
  request irecv(void* base, const layout& form);
  /// The same without throwing; see status::error.
  status recv(std::nothrow_t, void* data, std::size_t bytes) noexcept;
  request irecv(std::nothrow_t, void* data, std::size_t bytes) noexcept;
  status recv(std::nothrow_t, void* base, const layout& form) noexcept;
  request irecv(std::nothrow_t, void* base, const layout& form) noexcept;

  template <message_range Range>
  status recv(Range&& data) {
    return recv(std::ranges::data(data), std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>));
  }
  template <message_object Object>
  status recv(Object& data) {
    return recv(&data, sizeof data);
  }
  template <lasting_message_range Range>
  request irecv(Range&& data) {
    return irecv(std::ranges::data(data),
                 std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>));
  }
  template <message_object Object>
  request irecv(Object& data) {
    return irecv(&data, sizeof data);
  }
  template <message_object Object>
  request irecv(const Object&& data) = delete;  // a temporary

 private:
  friend class communicator;
  explicit matched_message(errc refused) noexcept { found_.error = refused; }
  matched_message(runtime::parcel& parcel, runtime::communicator_state& on, const status& found) noexcept
      : parcel_(&parcel), on_(&on), found_(found) {}

  runtime::parcel* parcel_ = nullptr;
  runtime::communicator_state* on_ = nullptr;
  status found_;
};

}  // namespace verbena
