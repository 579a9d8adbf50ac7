// The errors of Verbena, as codes (`errc`, an std::error_code category) and as the exception a caller sees.
// The codes travel on the data path; the sentence is worded once, where the cause is known.
#pragma once

#include <verbena/export.hpp>

#include <cstdint>
#include <string>
#include <system_error>

namespace verbena {

/// Why a call or an operation failed. Zero is success. The values are part of the interface: only append.
enum class errc : std::uint8_t {
  success = 0,
  truncated,         ///< the message was longer than the receive; the buffer's end was respected
  peer_failed,       ///< the process at the other end is gone
  invalid_argument,  ///< a rank, tag, size or pointer outside its range
  not_in_job,        ///< started by a launcher that gave no PMIx server, or with a broken environment
  not_supported,     ///< this build or this machine cannot do it
  timed_out,         ///< a deadline passed; the text says what was waited for
  cancelled,         ///< a receive was cancelled before it matched
  out_of_memory,     ///< the segment, locked memory or the heap is exhausted
  malformed,         ///< a packet, a job page or a setting did not decode
  outcome_unknown,   ///< a link broke while an operation that cannot be replayed was in flight
  access_denied,     ///< a remote key was wrong or revoked
  link_down,         ///< no way to the peer is left
  aborted,           ///< the job is being ended
  mismatch,          ///< ranks called a collective with arguments that do not fit together
  system,            ///< a system call failed; the text names it and errno
  peer_left,         ///< the process at the other end has left the job in good order
};

VERBENA_API const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

/// What the throwing calls throw. `what()` is one sentence: what happened, where, and what cures it.
class VERBENA_API error : public std::system_error {
 public:
  error(errc code, const std::string& text);
  ~error() override;
  const char* what() const noexcept override { return text_.c_str(); }
  errc reason() const noexcept { return static_cast<errc>(code().value()); }

 private:
  std::string text_;
};

}  // namespace verbena

template <>
struct std::is_error_code_enum<verbena::errc> : std::true_type {};
