// Sends and receives with fixed arguments, started again and again.
#include "runtime/calls.hpp"
#include "runtime/request_access.hpp"

#include <memory>
#include <utility>

namespace verbena::runtime {
namespace {

/// Owned by its persistent_request; frees itself.
struct persistent_message final : persistent_work {
  communicator_state* on;
  bool is_receive;
  user_memory data;
  std::shared_ptr<const shape> form;  ///< keeps data.form
  rank with{};
  tag label{};

  persistent_message(communicator_state& of, bool receives) : on(&of), is_receive(receives) {
    on->hold();
    if (is_receive) on->may_ask();
  }
  ~persistent_message() { on->let_go(); }
  void drop() noexcept override {
    if (is_receive) on->asks_no_more();
  }
  void start() override {
    if (is_receive)
      start_receive(*on, op, data.data, data.bytes, with, label, data.form);
    else
      host->engine().send(op, on->way_to(with), data.data, data.bytes, label, false, data.form);
  }
  bool cancel() noexcept override { return is_receive && host->engine().cancel(op); }
  [[noreturn]] void raise() const override {
    if (is_receive) throw_receive_error(*on, op.result, with, label, data.bytes);
    throw_send_error(*on, op.result.error, with, label, data.bytes);
  }
  void destroy() noexcept override { delete this; }
};

}  // namespace

persistent_request make_persistent(communicator_state& on, bool is_receive, const user_memory& data,
                                   std::shared_ptr<const shape> form, rank with, tag label) {
  auto work = std::make_unique<persistent_message>(on, is_receive);
  work->host = &on.host();
  work->data = data;
  work->form = std::move(form);
  work->with = with;
  work->label = label;
  return request_access::persistent(*work.release());
}

}  // namespace verbena::runtime
