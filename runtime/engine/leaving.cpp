// Leaving the job in good order (MPI 4.0, section 11.2: what was started completes first): what is still
// under way when the context goes is waited for, and peers learn that nothing more will be received here, so
// that two ranks that leave with messages for each other do not wait for ever.
#include "runtime/engine/engine.hpp"

namespace verbena::runtime {

void engine::begin_leaving() {
  base::check(!polling_, "leaving from inside a poll");
  messages_.for_each_live([&](message& m) {
    if (m.at == step::posted) {
      matcher_.remove(m.posted);
      return finish(m, errc::cancelled);
    }
    if (m.with == nullptr || m.at == step::leave || m.with->told_leaving || m.with->down != errc::success)
      return;
    engine_peer& to = *m.with;
    to.told_leaving = true;
    message& word = messages_.take();
    word.with = &to;
    word.head.what = wire::kind::leave;
    word.at = step::leave;
    enqueue(to, word);  // behind what answers the peer's own announcements
  });
  flush();
}

/// The peer answers no announcement any more that it has not answered yet: those answers came before this.
void engine::on_leave(engine_peer& from) {
  from.leaving = true;
  messages_.for_each_live([&](message& m) {
    const bool queued = m.at == step::rts || m.at == step::envelope;
    if (m.with != &from || (!queued && m.at != step::awaiting && m.at != step::unacknowledged)) return;
    if (m.method == transport::bulk_method::together && m.key.size != 0) {
      if (!fabric_.withdraw(peer{from.index}, m.key)) return;  // it was accepted: the data is on its way
      m.moving.take_back();
    }
    if (queued) --waiting_;
    finish(m, errc::peer_left);
  });
}

}  // namespace verbena::runtime
