// Messages of communicators that are not there (any more, or yet), and what is left of one that goes.
#include "runtime/engine/engine.hpp"

namespace verbena::runtime {

/// A message for a communicator that was freed here: nobody can ever ask for it. Its sender must not wait for
/// that.
void engine::drop_stale(engine_peer& from, const wire::header& head, std::optional<wire::handle> waiting) {
  ++counts_.stale;
  if (!waiting) return;
  message& m = messages_.take();
  m.op = &m.moving;  // nobody's
  m.with = &from;
  m.head = head;
  m.head.what = wire::kind::fin;
  m.remote = *waiting;
  m.at = step::answer;
  enqueue(from, m);
}

/// The same for one whose data came along, and is out of the way again.
void engine::drop_stale_data(engine_peer& from, const wire::header& head, std::size_t total) {
  release_charge(from, charge_of(total));
  drop_stale(from, head);
}

/// The only operations left would be those that somebody still holds a request for.
bool engine::context_busy(std::uint32_t context) noexcept {
  if (messages_.live() == 0) return false;
  bool busy = false;
  messages_.for_each_live([&](const message& m) {
    const std::uint32_t of = m.at == step::posted ? m.posted.want.context : m.head.context.value;
    busy |= m.op != nullptr && m.op != &m.moving && (of & ~collective_bit) == context;
  });
  return busy;
}

void engine::forget_context(std::uint32_t context) {
  drop_parcels_of(context, 0);
}

std::uint32_t engine::install_context(std::uint32_t slot, std::uint64_t generation) {
  const std::uint32_t context = contexts_.install(slot, generation);
  // While the slot was held, a late packet of an older use could not be told from an early one.
  drop_parcels_of(slot, context);
  return context;
}

void engine::drop_context(std::uint32_t slot) {
  contexts_.drop(slot);
  drop_parcels_of(slot, 0);
}

/// Drops what has arrived in unwanted contexts.
template <class Unwanted>
void engine::drop_parcels(Unwanted&& unwanted) {
  if (closed_ || (!matcher_.has_unexpected() && queueing_.empty())) return;
  const auto drop = [&](parcel& p) {
    if (p.from->open_parcel == &p) p.from->open_parcel = nullptr;  // the pieces to come are stale, too
    if (p.synchronous() && p.from->down == errc::success) acknowledge(*p.from, p.waits);
    drop_stale(*p.from, p.head, p.announced ? std::optional(p.rts.sender) : std::nullopt);
    unpark(p);
  };
  // First those behind: what is dropped from the matcher makes room for them.
  const std::vector<engine_peer*> queueing = queueing_;
  for (engine_peer* from : queueing)
    from->behind->remove_if([&](queued_envelope& e) {
      if (!unwanted(e.is.context)) return false;
      drop(unfold(*from, e));
      return true;
    });
  if (matcher_.has_unexpected())
    matcher_.for_each_unexpected([&](unexpected_message& u) {
      if (!unwanted(u.is.context)) return;
      auto& p = *static_cast<parcel*>(u.holder);
      matcher_.remove(u);
      --p.from->in_matcher;
      drop(p);
    });
  for (engine_peer* from : queueing) {
    if (from->behind->empty()) std::erase(queueing_, from);
    else refill(*from);
  }
  if (!polling_) answer();
}

/// Drops what has arrived for the slot of `which` and is not for the communicator `but`.
void engine::drop_parcels_of(std::uint32_t which, std::uint32_t but) {
  drop_parcels([slot = context_table::slot_of(which), but](std::uint32_t key) {
    const std::uint32_t context = key & ~collective_bit;
    return context_table::slot_of(context) == slot && context != but;
  });
}

void engine::close_context(std::uint32_t context) {
  contexts_.close(context_table::slot_of(context));
  drop_parcels([=](std::uint32_t key) { return key == context; });
}

post_result engine::advance_answer(message& m) {
  engine_peer& to = *m.with;
  const wire::fin_body body{.to = m.remote,
                            .bytes = 0,
                            .error = static_cast<std::uint8_t>(errc::truncated),
                            .from_sender = 0,
                            .reserved = {}};
  const post_result result = fabric_.send(peer{to.index}, wire::encode(m.head), sizeof body,
                                          [&](std::byte* at) { wire::put(at, body); });
  if (result != post_result::done) return result;
  m.unlink();
  --waiting_;
  messages_.release(m);
  return result;
}

}  // namespace verbena::runtime
