// What arrives before its receive: parcels in the matcher, envelopes queued behind them, and the budget for
// both.
#include "runtime/engine/engine.hpp"

#include <algorithm>

namespace verbena::runtime {

parcel& engine::park(engine_peer& from, const wire::header& head, std::size_t total) {
  ++counts_.unexpected;
  parcel& p = parcels_.take();
  p.from = &from;
  p.head = head;
  p.total = total;
  p.entry.holder = &p;
  return p;
}

/// Keeps the first bytes of an eager message, with room for the rest. Beyond the hard limit nothing is kept:
/// only a peer that ignores its budget gets there, and the receive that matches is told.
parcel& engine::park_data(engine_peer& from, const wire::header& head, std::size_t total,
                          std::span<const std::byte> payload) {
  parcel& p = park(from, head, total);
  p.arrived = payload.size();
  p.charge = charge_of(total);
  from.incoming.parked += p.charge;
  if (from.incoming.parked > hard_limit(budget_)) {
    malformed();
    p.refused = true;
  } else if (total != 0) {
    p.data = blocks_.take(total);
    base::copy_bytes(p.data, payload.data(), payload.size());
  }
  return p;
}

/// A message whose data is with its sender.
void engine::park_envelope(engine_peer& from, const wire::header& head, std::size_t total,
                           wire::handle sender, std::uint8_t method) {
  queued_envelope e;
  e.is = key_of(head);
  e.what = queued_envelope::kind::envelope;
  e.method = method;
  e.total = total;
  e.sender = sender;
  if (from.in_matcher < matcher_share_ && (from.behind == nullptr || from.behind->empty())) {
    parcel& p = unfold(from, e);
    ++from.in_matcher;
    matcher_.add_unexpected(p.entry, e.is);
    return;
  }
  ++counts_.unexpected;
  if (from.behind == nullptr) from.behind = std::make_unique<envelope_queue>();
  if (from.behind->empty()) queueing_.push_back(&from);
  from.behind->push(e);
}

/// Into the matcher, or behind what came before it and is not there either.
void engine::keep_parcel(engine_peer& from, parcel& p) {
  if (from.behind == nullptr || from.behind->empty()) {
    ++from.in_matcher;
    return matcher_.add_unexpected(p.entry, key_of(p.head));
  }
  queued_envelope e;
  e.is = key_of(p.head);
  e.what = queued_envelope::kind::held;
  e.total = p.total;
  e.held = &p;
  from.behind->push(e);
}

void engine::unpark(parcel& p) noexcept {
  if (p.data != nullptr) blocks_.give_back(p.data, p.total);
  if (p.charge != 0) {
    p.from->incoming.parked -= p.charge;
    release_charge(*p.from, p.charge);
  }
  parcels_.release(p);
}

/// The parcel that an envelope stands for.
parcel& engine::unfold(engine_peer& from, const queued_envelope& e) {
  if (e.what == queued_envelope::kind::held) return *e.held;
  const wire::header head{.what = wire::kind::envelope_only,
                          .flags = 0,
                          .lane = 0,
                          .reserved = 0,
                          .context = {e.is.context},
                          .source = e.is.source.value,
                          .label = e.is.label.value};
  parcel& p = park(from, head, e.total);
  p.announced = true;
  p.rts = {.total = e.total, .sender = e.sender, .key = {}, .method = e.method, .reserved = {}};
  return p;
}

/// Moves the oldest envelopes into the matcher while there is room.
void engine::refill(engine_peer& from) {
  if (from.behind == nullptr || from.behind->empty() || from.in_matcher > matcher_share_ / 2) return;
  while (!from.behind->empty() && from.in_matcher < matcher_share_) {
    queued_envelope& oldest = from.behind->front();
    parcel& p = unfold(from, oldest);
    --counts_.unexpected;  // counted when it came
    ++from.in_matcher;
    matcher_.add_unexpected(p.entry, oldest.is);
    from.behind->remove(oldest);
  }
  if (from.behind->empty()) std::erase(queueing_, &from);
}

/// Takes out the oldest message that a receive matches, or null. `only`: whom it can come from; null:
/// anybody.
parcel* engine::take_parcel(const match_key& want, const engine_peer* only) {
  if (unexpected_message* found = matcher_.take_unexpected(want)) {
    auto& p = *static_cast<parcel*>(found->holder);
    --p.from->in_matcher;
    refill(*p.from);
    return &p;
  }
  for (engine_peer* from : queueing_)
    if (only == nullptr || only == from)
      if (parcel* found = take_from_behind(*from, want)) return found;  // the list may have changed
  return nullptr;
}

std::optional<engine::sighting> engine::peek(const peer* from, const match_key& want) noexcept {
  if (const unexpected_message* found = matcher_.peek_unexpected(want))
    return sighting{found->is.source, found->is.label, static_cast<const parcel*>(found->holder)->total};
  for (engine_peer* const other : queueing_)
    if (from == nullptr || from->index == other->index)
      if (const queued_envelope* found = other->behind->find(want))
        return sighting{found->is.source, found->is.label, found->total};
  return std::nullopt;
}

parcel* engine::take(const peer* from, const match_key& want) {
  return take_parcel(want, from == nullptr ? nullptr : &meet(*from));
}

parcel* engine::take_from_behind(engine_peer& from, const match_key& want) {
  queued_envelope* found = from.behind->find(want);
  if (found == nullptr) return nullptr;
  parcel& p = unfold(from, *found);
  if (found->what == queued_envelope::kind::envelope) --counts_.unexpected;  // counted when it came
  from.behind->remove(*found);
  if (from.behind->empty()) std::erase(queueing_, &from);
  return &p;
}

/// A peer is gone, and with it announced data and the rest of messages that broke off in the middle. What it sent after
/// one of those in the same communicator goes, too, whole or not: it must not overtake what is missing.
void engine::drop_incomplete(engine_peer& gone) noexcept {
  const auto complete = [](const parcel& p) { return !p.announced && p.arrived == p.total; };
  std::unordered_map<std::uint32_t, std::uint64_t> broken;  // context -> the oldest of those
  matcher_.for_each_unexpected([&](unexpected_message& u) {
    const auto& p = *static_cast<parcel*>(u.holder);
    if (p.from != &gone || complete(p)) return;
    const auto [at, first] = broken.emplace(u.is.context, u.order);
    if (!first) at->second = std::min(at->second, u.order);
  });
  matcher_.for_each_unexpected([&](unexpected_message& u) {
    auto& p = *static_cast<parcel*>(u.holder);
    if (p.from != &gone) return;
    if (const auto at = broken.find(u.is.context); at == broken.end() || u.order < at->second) return;
    matcher_.remove(u);
    --gone.in_matcher;
    unpark(p);
  });
  if (gone.behind != nullptr && !gone.behind->empty()) {
    gone.behind->remove_if([&](queued_envelope& e) {  // in the order of arrival
      if (e.what == queued_envelope::kind::envelope) {
        broken.emplace(e.is.context, 0);
        return true;
      }
      if (!complete(*e.held)) broken.emplace(e.is.context, 0);
      if (broken.count(e.is.context) == 0) return false;
      unpark(*e.held);
      return true;
    });
    // What is left is whole, and in the budget: it has room in the matcher.
    gone.behind->for_each([&](queued_envelope& e) {
      ++gone.in_matcher;
      matcher_.add_unexpected(e.held->entry, e.is);
    });
    gone.behind.reset();
    std::erase(queueing_, &gone);
  }
  std::erase(reporting_, &gone);
  gone.report_due = gone.ask_due = gone.tell_due = false;
}

void engine::owe_report(engine_peer& from) noexcept {
  if (from.report_due || from.down != errc::success) return;
  if (!from.ask_due && !from.tell_due) reporting_.push_back(&from);
  from.report_due = true;
}

/// Tells senders what is out of the way. The sum is cumulative, so a report that finds no room just comes
/// later.
void engine::report_charges() {
  std::erase_if(reporting_, [&](engine_peer* p) {
    if ((p->ask_due || p->tell_due) && !inquire(*p)) return false;
    if (!p->report_due) return true;
    const wire::grant_body body{.released = p->incoming.released};
    const transport::envelope head = wire::pack(wire::kind::grant, 0, 0, 0);
    const post_result result =
        fabric_.send(peer{p->index}, head, sizeof body, [&](std::byte* at) { wire::put(at, body); });
    if (result == post_result::again) return false;
    p->report_due = false;
    p->incoming.reported = body.released;
    ++counts_.grants;
    return true;
  });
}

void engine::on_grant(engine_peer& from, std::span<const std::byte> payload) {
  const auto grant = wire::take<wire::grant_body>(payload);
  if (!grant || !from.outgoing.report(grant->released, budget_)) malformed();
}

}  // namespace verbena::runtime
