// How the calls that take std::nothrow report what the others throw. Internal.
#pragma once

#include "runtime/request_access.hpp"

#include <verbena/error.hpp>

#include <new>

namespace verbena::runtime {

/// Runs a call; what it throws becomes what `refusal(errc)` makes of it.
template <class Call, class Refusal>
auto quietly(Call&& call, Refusal&& refusal) noexcept {
  try {
    return call();
  } catch (const error& e) {
    return refusal(e.reason());
  } catch (const std::bad_alloc&) {
    return refusal(errc::out_of_memory);
  }
}

/// The same for calls that return a status.
template <class Call>
status quietly(Call&& call) noexcept {
  return quietly(call, [](errc why) {
    status failed;
    failed.error = why;
    return failed;
  });
}

/// The same for calls that return a request: it is over, with the error.
template <class Call>
request quietly_started(Call&& call) noexcept {
  return quietly(call, [](errc why) { return request_access::refused(why); });
}

}  // namespace verbena::runtime
