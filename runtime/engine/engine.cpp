#include "runtime/engine/engine.hpp"

#include <algorithm>

namespace verbena::runtime {

engine::engine(transport::routed_fabric& fabric, const base::settings& settings, std::uint32_t self,
               std::uint32_t job_size)
    : fabric_(fabric),
      eager_override_(settings.eager_limit),
      budget_(settings.unexpected_budget),
      report_step_(report_step(budget_)),
      matcher_share_(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(budget_ / message_overhead, 16, 1U << 20))),
      self_(self),
      peers_(job_size),
      exposed_((self + 1) * 0x9e3779b1U) {
  reporting_.reserve(8);
#ifdef VERBENA_TEST_HOOKS
  flip_bytes_ = settings.test_faults == "flip_byte";
#endif
}

engine::~engine() {
  // Nothing may point into this engine afterwards: parcels give their blocks back, fabrics lose their operations with
  // the context that owns them.
  matcher_.for_each_unexpected([&](unexpected_message& u) {
    auto* p = static_cast<parcel*>(u.holder);
    if (p->data != nullptr) blocks_.give_back(p->data, p->total);
  });
  for (engine_peer* p : queueing_)
    p->behind->for_each([&](queued_envelope& e) {
      if (e.what == queued_envelope::kind::held && e.held->data != nullptr)
        blocks_.give_back(e.held->data, e.held->total);
    });
  messages_.for_each_live([&](message& m) {
    if (m.at == step::packed) blocks_.give_back(m.data, packed_bytes);
  });
}

bool engine::progress(base::nanoseconds now) {
  now_ = now;
  polling_ = true;
  bool moved = fabric_.poll(now, *this) != 0;
  polling_ = false;
  if (!starting_.empty() || retrying()) answer();
  if (!tasks_.empty()) tasks_.for_each([&](progress_task& task) { moved |= task.advance(); });
  return moved;
}

/// What matched inside poll goes on, and what waits for room tries again.
void engine::answer() {
  while (!starting_.empty()) start(starting_.pop_front());
  if (!reporting_.empty()) report_charges();
  if (waiting_ != 0) flush();
}

void engine::on_packet(peer from, transport::envelope head, std::span<const std::byte> payload) noexcept {
  engine_peer& source = meet(from);
  const wire::header h = wire::decode(head);
  switch (h.what) {
    case wire::kind::eager: return on_eager(source, h, payload);
    case wire::kind::eager_first: return on_eager_first(source, h, payload);
    case wire::kind::eager_more: return on_eager_more(source, h, payload);
    case wire::kind::rts: return on_rts(source, h, payload);
    case wire::kind::cts: return on_cts(source, payload);
    case wire::kind::fin: return on_fin(source, payload);
    case wire::kind::data: return on_data(source, payload);
    case wire::kind::one_sided: return on_one_sided(source, payload);
    case wire::kind::one_sided_reply: return on_one_sided_reply(source, payload);
    case wire::kind::leave: return on_leave(source);
    case wire::kind::ask_wait:
      return on_ask_wait(source);
    case wire::kind::tell_wait:
      return on_tell_wait(source, payload);
    case wire::kind::sync_ack: return on_sync_ack(source, payload);
    case wire::kind::grant: return on_grant(source, payload);
    case wire::kind::envelope_only: return on_envelope_only(source, h, payload);
    default: return malformed();
  }
}

void engine::on_limits_changed(peer from) noexcept {
  if (peers_[from.index].packet_bytes != 0) read_limits(peers_[from.index]);
}

void engine::on_peer_down(peer from, errc why) noexcept {
  engine_peer& gone = meet(from);
  if (gone.down != errc::success) return;
  gone.down = why;
  gone.channel = nullptr;   // the short ways lead through the checks again
  gone.single_eager = 0;
  any_down_ = true;
  const bool failed = why != errc::peer_left;
  if (failed) failed_.push_back(from);
  gone.open_receive = nullptr;
  fail_waiting(gone, why);
  // What waited, was matched or was posted for this peer alone ends here. After a failure so does a receive from anybody
  // in a communicator that had it, which would otherwise wait for a message that may never come. Data that arrived whole
  // can still be received.
  messages_.for_each_live([&](message& m) {
    const bool concerned = m.with == &gone || (m.with == nullptr && failed && m.at == step::posted &&
                                               in_(members_of_, m.posted.want.context, from));
    if (!concerned) return;
    if (m.at == step::posted) matcher_.remove(m.posted);
    finish(m, why);
  });
  if (gone.linked()) gone.unlink();
  drop_incomplete(gone);
  gone.open_parcel = nullptr;
}

bool engine::any_failed_in(std::uint32_t context) const noexcept {
  return std::any_of(failed_.begin(), failed_.end(), [&](peer p) { return in_(members_of_, context, p); });
}

void engine::finish(message& m, errc error) noexcept {
  operation* op = m.op;
  if (m.at == step::packed) {
    kept_ -= m.size - m.moved;
    blocks_.give_back(m.data, packed_bytes);
  }
  messages_.release(m);
  if (op != nullptr) op->complete(error);
}

}  // namespace verbena::runtime
