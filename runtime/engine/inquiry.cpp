// What does a rank of another host wait for? Asked of it when a wait for it has lasted too long, and answered by its engine,
// which is in the same kind of wait, or at least makes progress. Only for the words of a message: nothing depends on it.
#include "runtime/engine/engine.hpp"

namespace verbena::runtime {

void engine::ask_wait(peer whom) {
  engine_peer& to = meet(whom);
  told_waits_.erase(whom.index);
  if (to.down != errc::success) return;
  if (!to.report_due && !to.ask_due && !to.tell_due) reporting_.push_back(&to);
  to.ask_due = true;
}

void engine::forget_ask(peer whom) noexcept {
  engine_peer& to = meet(whom);
  if (!to.ask_due) return;
  to.ask_due = false;
  if (!to.report_due && !to.tell_due) std::erase(reporting_, &to);
}

std::optional<wire::wait_body> engine::told_wait(peer by) const {
  const auto at = told_waits_.find(by.index);
  return at == told_waits_.end() ? std::nullopt : std::optional(at->second);
}

/// However often it asks, one answer is under way.
void engine::on_ask_wait(engine_peer& from) {
  if (from.down != errc::success) return;
  if (!from.report_due && !from.ask_due && !from.tell_due) reporting_.push_back(&from);
  from.tell_due = true;
}

void engine::on_tell_wait(engine_peer& from, std::span<const std::byte> payload) {
  const auto told = wire::take<wire::wait_body>(payload);
  if (!told) return malformed();
  told_waits_[from.index] = *told;
}

/// Sends what is due; false: there is no room. No order with messages is kept or needed.
bool engine::inquire(engine_peer& p) {
  if (p.ask_due) {
    const transport::envelope head = wire::pack(wire::kind::ask_wait, 0, 0, 0);
    if (fabric_.send(peer{p.index}, head, 0, [](std::byte*) {}) == post_result::again) return false;
    p.ask_due = false;
  }
  if (p.tell_due) {
    const transport::envelope head = wire::pack(wire::kind::tell_wait, 0, 0, 0);
    const post_result result =
        fabric_.send(peer{p.index}, head, sizeof own_wait_, [this](std::byte* at) { wire::put(at, own_wait_); });
    if (result == post_result::again) return false;
    p.tell_due = false;
  }
  return true;
}

}  // namespace verbena::runtime
