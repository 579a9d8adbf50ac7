// The end of a link: its peer has died or left, or the connection broke. Rule 6 of the contract: the queue pairs are
// stopped first, so that the peer writes no more; what is under way is flushed by the device; what had arrived is reported;
// then, and only then, the sink hears of it.
#include "transport/verbs/endpoint.hpp"

#include <unistd.h>

#include <algorithm>

namespace verbena::transport::verbs {
namespace {

constexpr base::nanoseconds longest_flush = 2 * base::second;    // then the queue pairs are destroyed
constexpr base::nanoseconds longest_leaving = 3 * base::second;  // a little more than all tries of a request

}  // namespace

/// What the launcher says of the ranks.
void endpoint::read_news() {
  if (!page_) return;
  const std::uint32_t news = page_->header().news.load(std::memory_order_acquire);  // pairs with announce
  if (news == news_seen_) return;
  news_seen_ = news;
  for (auto& l : links_) {
    if (!l || !l->reachable()) continue;
    const base::rank_state state = page_->record(l->who.index).state.load(std::memory_order_acquire);
    if (state == base::rank_state::failed) close(*l, errc::peer_failed, {});
    if (state == base::rank_state::left) close(*l, errc::peer_left, {});
  }
}

void endpoint::close(link& of, errc why, std::string words) {
  if (!of.reachable()) return;
  if (page_ && page_->record(of.who.index).state.load(std::memory_order_acquire) == base::rank_state::left)
    why = errc::peer_left;  // it did not answer because it is through
  const bool has_markers =
      of.state == link_state::broken && of.mends.is() == mending::stage::draining && of.silenced_at == 0;
  of.state = link_state::closing;
  of.end = why;
  of.last_words = std::move(words);
  of.closing_since = now_;
  of.serving.stop();  // not reset: with a reset a device may forget what it has not told yet
  of.packets.stop();
  of.accesses.stop();
  if (!has_markers) {
    post_marker(of, of.packets, request::packet);
    post_marker(of, of.accesses, request::access);
  }
  closing_.push_back(&of);
}

/// Requests that succeeded unsignalled never tell. One more, behind them on a stopped queue pair, is flushed, and its
/// completion says that all before it are over.
void endpoint::post_marker(link& of, queue_pair& q, request what) noexcept {
  if (!q || q.outstanding() == 0) return;
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = name(what, of, q.posted);
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(q.get(), &wr, &bad) != 0) return;  // then bury_the_closed waits its longest
  if (what == request::packet) of.slots[q.posted % of.slots.size()] = link::no_slot;
  ++q.posted;
  --tokens_;
}

void endpoint::bury_the_closed() {
  for (std::size_t i = 0; i < closing_.size();) {
    link& l = *closing_[i];
    const bool flushed = l.packets.outstanding() == 0 && l.accesses.outstanding() == 0;
    const base::nanoseconds took = told_until_ - l.closing_since;
    if (took <= 0 || (!flushed && took < longest_flush)) {
      ++i;
      continue;
    }
    // Destroyed, a queue pair is done for good; completions of it that come late belong to nobody.
    for (queue_pair* q : {&l.packets, &l.accesses, &l.serving}) {
      if (!*q) continue;
      roles_.erase(q->number());
      q->destroy();
    }
    if (l.packets.outstanding() != 0) retire_packets(l, l.packets.posted - 1);
    tokens_ += static_cast<std::int32_t>(l.accesses.outstanding());
    l.accesses.retired = l.accesses.posted;
    l.state = link_state::down;
    given_back(l, l.sent);
    while (l.under_way.size() != 0) finish_first(l, l.end);
    arrival& news = arrivals_.emplace_back();
    news.what = arrival::kind::down;
    news.from = l.who;
    news.why = l.end;
    closing_[i] = closing_.back();
    closing_.pop_back();
  }
}

/// In good order: everything sent has arrived, and the peers know that no more comes. Whoever said so itself, or is dead,
/// is not waited for.
void endpoint::leave() {
  leaving_ = true;
  if (dead_) return;
  base::nanoseconds end = base::steady_now() + longest_leaving;
  const base::nanoseconds at_last = end + 2 * how_.link_timeout;
  for (bool waiting = true; waiting;) {
    const base::nanoseconds now = base::steady_now();
    std::size_t steps = 0;
    gather(now, nullptr, steps);
    release();
    read_news();
    // Mending has an end of its own; then what the peer lacks still has to arrive.
    if (!mending_.empty()) end = now + longest_leaving;
    if (now >= std::min(end, at_last)) return;
    waiting = false;
    for (auto& l : links_) {
      if (!l || !l->reachable()) continue;
      if (!l->up()) {
        waiting = true;
        continue;
      }
      if (!l->said_bye && l->posted == l->sent) {
        control word;
        word.what = control_kind::bye;
        word.flags = l->flags_received;
        l->said_bye = say(*l, word);
      }
      waiting = waiting || !l->said_bye || l->packets.outstanding() != 0;
    }
    if (waiting) ::usleep(50);
  }
}

void endpoint::die() noexcept {
  dead_ = true;
  if (mail_) mail_->silence();
  for (auto& l : links_) {
    if (!l) continue;
    l->serving.silence();
    l->packets.silence();
    l->accesses.silence();
  }
}

}  // namespace verbena::transport::verbs
