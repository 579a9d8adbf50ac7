#include "runtime/request_access.hpp"

#include <fmt/format.h>

#include <new>

namespace verbena {
namespace runtime {
namespace {

std::string words(const communicator_state& on, errc why, rank with) {
  if ((why == errc::peer_failed || why == errc::peer_left) && with != any_source)
    return on.host().obituary(on.peer_of(with));
  if (why == errc::peer_failed) return "a rank that might have sent is gone";
  return make_error_code(why).message();
}

std::string name_of(tag label) { return label == any_tag ? "any tag" : fmt::format("tag {}", label.value); }

}  // namespace

void throw_send_error(const communicator_state& on, errc why, rank to, tag label, std::size_t bytes) {
  throw error(why, fmt::format("rank {}: send of {} B to rank {}, {}: {}", on.self().value, bytes, to.value,
                               name_of(label), words(on, why, to)));
}

void throw_receive_error(const communicator_state& on, const transport::outcome& got, rank from, tag label,
                         std::size_t bytes) {
  if (got.error == errc::truncated)
    throw error(errc::truncated, fmt::format("rank {}: recv posted {} B, got {} B from rank {} tag {}", on.self().value,
                                             bytes, got.sent_bytes, got.source.value, got.label.value));
  const std::string whom = from == any_source ? "any rank" : fmt::format("rank {}", from.value);
  throw error(got.error, fmt::format("rank {}: recv of {} B from {}, {}: {}", on.self().value, bytes, whom,
                                     name_of(label), words(on, got.error, from)));
}

}  // namespace runtime

request& request::operator=(request&& other) noexcept {
  if (this != &other) {
    request old(std::move(*this));
    operation_ = std::exchange(other.operation_, nullptr);
    result_ = other.result_;
  }
  return *this;
}

request::~request() {
  if (operation_ == nullptr) return;
  if (!operation_->op.done() && operation_->is_receive) operation_->host->engine().cancel(operation_->op);
  operation_->host->wait(operation_->op);
  operation_->host->release(*operation_);
}

bool request::done() const noexcept { return operation_ == nullptr || operation_->op.done(); }

bool request::test() {
  if (done()) return true;
  operation_->host->progress();
  return done();
}

status request::wait(std::nothrow_t) noexcept {
  if (operation_ == nullptr) return result_;
  operation_->host->wait(operation_->op);
  result_ = runtime::to_status(operation_->op.result);
  operation_->host->release(*std::exchange(operation_, nullptr));
  return result_;
}

status request::wait() {
  if (operation_ == nullptr) return result_;
  runtime::pooled_operation& p = *operation_;
  p.host->wait(p.op);
  const transport::outcome got = p.op.result;
  result_ = runtime::to_status(got);
  operation_ = nullptr;
  p.host->release(p);
  if (got.error != errc::success) {
    if (p.is_receive) runtime::throw_receive_error(*p.on, got, p.with, p.label, p.size);
    runtime::throw_send_error(*p.on, got.error, p.with, p.label, p.size);
  }
  return result_;
}

void request::detach() noexcept {
  if (operation_ == nullptr) return;
  runtime::pooled_operation& p = *std::exchange(operation_, nullptr);
  if (p.op.done()) return p.host->release(p);
  p.op.owner = &p;
  p.op.on_done = [](runtime::operation& op) noexcept {
    auto& self = *static_cast<runtime::pooled_operation*>(op.owner);
    self.host->release(self);
  };
}

}  // namespace verbena
