#include "collectives/started_call.hpp"

#include "collectives/communicator_state.hpp"

#include <algorithm>

namespace verbena::collectives {
namespace {

void end(runtime::operation& op, const execution& one) noexcept {
  op.complete(one.error());  // may free or start again what `op` belongs to
}

}  // namespace

void started_call::begin(execution& one, const prepared& what) noexcept {
  used = true;
  one_ = &one;
  name_ = what.name;
  op.on_done = nullptr;
  op.start();
  one.run_as_task(
      [](void* self) noexcept {
        auto& me = *static_cast<started_call*>(self);
        end(me.op, *me.one_);
      },
      this);
}

void started_call::raise() const {
  home_.raise(*one_, name_);
}

void started_call::release() noexcept {
  one_->claimed = false;
  used = false;
}

persistent_call::persistent_call(communicator_state& home, const prepared& what)
    : home_(home),
      what_(what),
      one_(home, algorithm_of(what.chosen.how)(home.self, home.size, {what.root})) {}

void persistent_call::start() {
  home_.refuse_if_lost(what_.name);
  if (what_.nothing) {
    op.start();
    return op.complete();
  }
  op.start();
  if (one_.lost()) return op.complete(one_.error());
  what_.call.number = home_.announce(what_.call.likeness);
  one_.start(what_.call);
  one_.run_as_task(
      [](void* self) noexcept {
        auto& me = *static_cast<persistent_call*>(self);
        end(me.op, me.one_);
      },
      this);
}

void persistent_call::raise() const {
  home_.raise(one_, what_.name);
}

started_call& requests_pool::take(communicator_state& home) {
  const auto free =
      std::find_if(started_.begin(), started_.end(), [](const started_call& one) { return !one.used; });
  started_call& taken = free != started_.end() ? *free : started_.emplace_back(home);
  return taken;
}

bool requests_pool::busy() const noexcept {
  return std::any_of(started_.begin(), started_.end(), [](const started_call& one) { return one.used; }) ||
         std::any_of(persistent_.begin(), persistent_.end(), [](const persistent_call& one) { return !one.dropped(); });
}

persistent_call& requests_pool::keep(communicator_state& home, const prepared& what) {
  persistent_.remove_if([](const persistent_call& one) { return one.forgettable(); });
  return persistent_.emplace_back(home, what);
}

void run(communicator_state& home, const prepared& what) {
  if (what.nothing) return;
  home.refuse_if_lost(what.name);
  work call = what.call;
  call.number = home.announce(call.likeness);
  home.run(what.chosen.how, call, what.name, what.root);
}

request start(communicator_state& home, const prepared& what) {
  if (what.nothing) return {};
  home.refuse_if_lost(what.name);
  execution& one = home.idle(what.chosen.how, what.root);
  started_call& handle = home.requests.take(home);
  work call = what.call;
  call.number = home.announce(call.likeness);
  one.start(call);
  one.claimed = true;
  handle.begin(one, what);
  return home.port.hand_out(handle);
}

persistent_request keep(communicator_state& home, const prepared& what) {
  return home.port.hand_out_persistent(home.requests.keep(home, what));
}

}  // namespace verbena::collectives
