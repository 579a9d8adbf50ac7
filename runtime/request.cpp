#include "runtime/quietly.hpp"
#include "runtime/request_access.hpp"

#include <fmt/format.h>

#include <new>

namespace verbena {
namespace runtime {
namespace {

std::string words(const communicator_state& on, errc why, rank with) {
  if (with != any_source) return on.host().reason(why, on.peer_of(with));
  if (why == errc::peer_failed)
    if (const auto gone = on.failed_member())
      return "a rank that might have sent is gone: " + on.host().obituary(on.peer_of(*gone));
  return make_error_code(why).message();
}

std::string name_of(tag label) {
  return label == any_tag ? "any tag" : fmt::format("tag {}", label.value);
}

}  // namespace

void throw_send_error(const communicator_state& on, errc why, rank to, tag label, std::size_t bytes) {
  throw error(why, fmt::format("rank {}{}: send of {} B to rank {}, {}: {}", on.self().value, on.of_name(), bytes, to.value,
                               name_of(label), words(on, why, to)));
}

void throw_receive_error(const communicator_state& on, const transport::outcome& got, rank from, tag label,
                         std::size_t bytes) {
  if (got.error == errc::truncated)
    throw error(errc::truncated,
                fmt::format("rank {}{}: recv posted {} B, got {} B from rank {} tag {}", on.self().value, on.of_name(),
                            bytes, got.sent_bytes, got.source.value, got.label.value));
  const std::string whom = from == any_source ? "any rank" : fmt::format("rank {}", from.value);
  throw error(got.error, fmt::format("rank {}{}: recv of {} B from {}, {}: {}", on.self().value, on.of_name(), bytes, whom,
                                     name_of(label), words(on, got.error, from)));
}

void throw_probe_error(const communicator_state& on, const char* call, errc why, rank from, tag label) {
  const std::string whom = from == any_source ? "any rank" : fmt::format("rank {}", from.value);
  throw error(why, fmt::format("rank {}: {} of {}, {}: {}", on.self().value, call, whom, name_of(label),
                               words(on, why, from)));
}

bool pooled_operation::cancel() noexcept {
  return is_receive && host->engine().cancel(op);
}

void pooled_operation::raise() const {
  if (is_receive) throw_receive_error(*on, op.result, with, label, size);
  throw_send_error(*on, op.result.error, with, label, size);
}

void pooled_operation::release() noexcept {
  host->release(*this);
}

}  // namespace runtime

request& request::operator=(request&& other) noexcept {
  if (this != &other) {
    request old(std::move(*this));
    work_ = std::exchange(other.work_, nullptr);
    result_ = other.result_;
    active_ = std::exchange(other.active_, false);
  }
  return *this;
}

request::~request() {
  if (work_ == nullptr) return;
  const runtime::entrance inside(work_->host->doors());
  if (!work_->op.done()) work_->cancel();
  work_->host->wait(work_->op);
  work_->release();
}

bool request::done() const noexcept {
  if (work_ == nullptr) return true;
  const runtime::entrance inside(work_->host->doors());
  return work_->op.done();
}

bool request::test() {
  if (done()) return true;
  const runtime::entrance inside(work_->host->doors());
  work_->host->look_once();
  return done();
}

status request::wait(std::nothrow_t) noexcept {
  active_ = false;
  if (work_ == nullptr) return result_;
  const runtime::entrance inside(work_->host->doors());
  work_->host->wait(work_->op);
  result_ = runtime::to_status(work_->op.result);
  std::exchange(work_, nullptr)->release();
  return result_;
}

status request::wait() {
  const bool first = std::exchange(active_, false);
  if (work_ == nullptr) {
    if (first && result_.error != errc::success && result_.error != errc::cancelled) [[unlikely]]
      throw error(result_.error, fmt::format("wait: the operation was refused when it was started: {}",
                                             make_error_code(result_.error).message()));
    return result_;
  }
  const runtime::entrance inside(work_->host->doors());
  struct releasing {
    runtime::pending_work* work;
    ~releasing() { work->release(); }
  };
  work_->host->wait(work_->op);
  const releasing at_the_end{std::exchange(work_, nullptr)};
  result_ = runtime::to_status(at_the_end.work->op.result);
  if (result_.error != errc::success) at_the_end.work->raise();
  return result_;
}

bool request::cancel() noexcept {
  if (work_ == nullptr) return false;
  const runtime::entrance inside(work_->host->doors());
  if (work_->op.done() || !work_->cancel()) return false;
  result_ = runtime::to_status(work_->op.result);
  result_.error = errc::cancelled;
  std::exchange(work_, nullptr)->release();
  return true;
}

void request::detach() noexcept {
  active_ = false;
  if (work_ == nullptr) return;
  runtime::pending_work& work = *std::exchange(work_, nullptr);
  const runtime::entrance inside(work.host->doors());
  if (work.op.done()) return work.release();
  work.op.owner = &work;
  work.op.on_done = [](runtime::operation& op) noexcept {
    static_cast<runtime::pending_work*>(op.owner)->release();
  };
}

persistent_request& persistent_request::operator=(persistent_request&& other) noexcept {
  if (this != &other) {
    persistent_request old(std::move(*this));
    work_ = std::exchange(other.work_, nullptr);
    refused_ = other.refused_;
  }
  return *this;
}

persistent_request::~persistent_request() {
  if (work_ == nullptr) return;
  const runtime::entrance inside(work_->host->doors());
  work_->kept = false;
  work_->drop();
  if (!work_->in_flight) work_->destroy();
}

request persistent_request::start() {
  if (work_ == nullptr) throw error(errc::invalid_argument, "start: this persistent request is empty");
  const runtime::entrance inside(work_->host->doors());
  if (work_->in_flight)
    throw error(errc::invalid_argument, "start: the request of the last start has not been waited for");
  work_->op.on_done = nullptr;  // a detached run leaves its hook
  work_->start();
  work_->in_flight = true;
  return runtime::request_access::pending(*work_);
}

request persistent_request::start(std::nothrow_t) noexcept {
  return runtime::quietly_started([&] { return start(); });
}

}  // namespace verbena
