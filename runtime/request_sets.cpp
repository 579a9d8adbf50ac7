// Waiting for and testing many requests: loops over request::wait, in the order and with the errors MPI
// wants.
#include "runtime/request_access.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbena {
namespace {

using runtime::context_state;

/// The context whose progress moves them; null: nothing is pending.
context_state* host_of(std::span<const request> requests) noexcept {
  for (const request& r : requests)
    if (context_state* host = runtime::request_access::host(r)) return host;
  return nullptr;
}

bool over(const request& r) noexcept {
  return r.active() && r.done();
}

bool any_active(std::span<const request> requests) noexcept {
  return std::any_of(requests.begin(), requests.end(), [](const request& r) { return r.active(); });
}

/// Waits until one is over; false: none is active.
bool await_one(std::span<request> requests) noexcept {
  if (!any_active(requests)) return false;
  const auto one = [&] { return std::any_of(requests.begin(), requests.end(), over); };
  if (one()) return true;
  context_state& host = *host_of(requests);
  const runtime::entrance inside(host.doors());
  host.wait_for(one);
  return true;
}

void progress_once(std::span<request> requests) noexcept {
  context_state* const host = host_of(requests);
  if (host == nullptr) return;
  const runtime::entrance inside(host->doors());
  host->look_once();
}

/// Index of one that is over, beginning the search where the last one of this context ended; `size` if none
/// is.
std::size_t pick(std::span<const request> requests) noexcept {
  const std::size_t size = requests.size();
  context_state* host = host_of(requests);
  std::optional<runtime::entrance> inside;
  if (host != nullptr) inside.emplace(host->doors());
  const std::size_t start = host != nullptr && size != 0 ? host->next_pick() % size : 0;
  for (std::size_t i = 0; i < size; ++i)
    if (const std::size_t at = (start + i) % size; over(requests[at])) {
      if (host != nullptr) host->picked(at);
      return at;
    }
  return size;
}

/// The first error among those taken, and how many there were.
struct failures {
  errc first = errc::success;
  std::string text;
  std::size_t index = 0;
  std::size_t count = 0;

  void note(std::size_t at, const error& e) {
    if (count++ == 0) {
      first = e.reason();
      index = at;
      text = e.what();
    }
  }
  void raise(const char* call, std::size_t of) const {
    if (count == 0) return;
    throw error(first, fmt::format("{}: {} of {} requests failed, first request {}: {}", call, count, of,
                                   index, text));
  }
};

status take(request& r, std::size_t index, failures& failed) {
  try {
    return r.wait();
  } catch (const error& e) {
    failed.note(index, e);
    return r.wait(std::nothrow);  // over: just says how
  }
}

std::vector<completion> take_all_over(std::span<request> requests, failures& failed) {
  std::vector<completion> taken;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (over(requests[i])) taken.push_back({i, take(requests[i], i, failed)});
  return taken;
}

std::vector<completion> take_all_over(std::span<request> requests) {
  std::vector<completion> taken;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (over(requests[i])) taken.push_back({i, requests[i].wait(std::nothrow)});
  return taken;
}

}  // namespace

void wait_all(std::span<request> requests, std::span<status> statuses) {
  failures failed;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const status got = requests[i].active() ? take(requests[i], i, failed) : status{};
    if (i < statuses.size()) statuses[i] = got;
  }
  failed.raise("wait_all", requests.size());
}

status wait_all(std::span<request> requests, std::nothrow_t, std::span<status> statuses) noexcept {
  status first;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const status got = requests[i].active() ? requests[i].wait(std::nothrow) : status{};
    if (i < statuses.size()) statuses[i] = got;
    if (first.error == errc::success && got.error != errc::success) first = got;
  }
  return first;
}

std::optional<completion> wait_any(std::span<request> requests) {
  if (!await_one(requests)) return std::nullopt;
  const std::size_t at = pick(requests);
  failures failed;
  const status got = take(requests[at], at, failed);
  failed.raise("wait_any", requests.size());
  return completion{at, got};
}

std::optional<completion> wait_any(std::span<request> requests, std::nothrow_t) noexcept {
  if (!await_one(requests)) return std::nullopt;
  const std::size_t at = pick(requests);
  return completion{at, requests[at].wait(std::nothrow)};
}

std::vector<completion> wait_some(std::span<request> requests) {
  if (!await_one(requests)) return {};
  failures failed;
  std::vector<completion> taken = take_all_over(requests, failed);
  failed.raise("wait_some", requests.size());
  return taken;
}

std::vector<completion> wait_some(std::span<request> requests, std::nothrow_t) {
  return await_one(requests) ? take_all_over(requests) : std::vector<completion>{};
}

namespace {

bool all_over(std::span<const request> requests) noexcept {
  return std::all_of(requests.begin(), requests.end(), [](const request& r) { return r.done(); });
}

bool all_over_now(std::span<request> requests) noexcept {
  if (!all_over(requests)) progress_once(requests);
  return all_over(requests);
}

}  // namespace

bool test_all(std::span<request> requests, std::span<status> statuses) {
  if (!all_over_now(requests)) return false;
  wait_all(requests, statuses);
  return true;
}

std::optional<status> test_all(std::span<request> requests, std::nothrow_t, std::span<status> statuses) noexcept {
  if (!all_over_now(requests)) return std::nullopt;
  return wait_all(requests, std::nothrow, statuses);
}

std::optional<completion> test_any(std::span<request> requests) {
  progress_once(requests);
  const std::size_t at = pick(requests);
  if (at == requests.size()) return std::nullopt;
  failures failed;
  const status got = take(requests[at], at, failed);
  failed.raise("test_any", requests.size());
  return completion{at, got};
}

std::optional<completion> test_any(std::span<request> requests, std::nothrow_t) noexcept {
  progress_once(requests);
  const std::size_t at = pick(requests);
  if (at == requests.size()) return std::nullopt;
  return completion{at, requests[at].wait(std::nothrow)};
}

std::vector<completion> test_some(std::span<request> requests) {
  progress_once(requests);
  failures failed;
  std::vector<completion> taken = take_all_over(requests, failed);
  failed.raise("test_some", requests.size());
  return taken;
}

std::vector<completion> test_some(std::span<request> requests, std::nothrow_t) {
  progress_once(requests);
  return take_all_over(requests);
}

}  // namespace verbena
