// A connection that broke: it is stopped, what it had carried is found out, and what it had not is set aside for the next.
//
//   stop     the queue pairs go into the error state: nothing comes in, what is under way is flushed
//   drain    completions are heard until what was under way is flushed, and for a few milliseconds at least, so that what was
//            half done is told; then the queue pairs are reset. What some devices (Soft-RoCE) still finish until then is heard
//            and counts, too; others forget at a reset what they have not told, but in the error state they finish nothing.
//            Now it is certain which packets and flags have arrived
//   settle   once the peer has told the same of its side: accesses that were carried out end well, the others are done
//            again, and atomics, whose answers are lost, end with outcome_unknown
#include "transport/verbs/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace verbena::transport::verbs {
namespace {

constexpr base::nanoseconds longest_flush = 2 * base::second;
constexpr base::nanoseconds stragglers =
    5 * base::millisecond;  // receives that were half done when it was stopped

bool has_begun(const access& a) {
  return a.all_posted || a.posted != 0;
}
/// A request that failed by itself, and not with its connection.
bool is_own_fault(errc why) {
  return why != errc::peer_failed && why != errc::link_down;
}

}  // namespace

/// `since`: when the link was last known to work.
void endpoint::break_off(link& of, errc why, std::string words, base::nanoseconds since) {
  if (!of.up()) return;
  const bool may_last = of.lived.ended(now_);
  const base::rank_state state =
      page_ ? page_->record(of.who.index).state.load(std::memory_order_acquire) : base::rank_state{};
  const bool gone = page_ && (state == base::rank_state::failed || state == base::rank_state::left);
  if (gone) why = state == base::rank_state::failed ? errc::peer_failed : errc::peer_left;
  if (gone || !of.way || now_ - since >= how_.link_timeout) return close(of, why, std::move(words));
  if (!may_last)
    return close(of, why, fmt::format("{} {} connections in a row broke like this.", words, lives::most));
  of.state = link_state::broken;
  of.end = why;
  of.last_words = std::move(words);
  of.said_bye = false;                     // it may not have arrived, nor what was before it
  of.was_asked = of.was_answered = false;  // both come again, over the next connection
  of.mends.break_off(now_, since, how_.link_timeout);
  stop(of);
  if (std::find(mending_.begin(), mending_.end(), &of) == mending_.end()) mending_.push_back(&of);
  ++steps_;
}

void endpoint::stop(link& of) noexcept {
  of.stopped_at = now_;
  of.silenced_at = 0;
  of.serving.stop();
  of.packets.stop();
  of.accesses.stop();
  post_marker(of, of.packets, request::packet);
  post_marker(of, of.accesses, request::access);
}

/// False: something may still come. Else nothing of the old connection counts any more.
bool endpoint::drain(link& of) {
  if (of.silenced_at == 0) {
    const bool flushed = of.packets.outstanding() == 0 && of.accesses.outstanding() == 0;
    const base::nanoseconds took = told_until_ - of.stopped_at;
    if (took < stragglers || (!flushed && took < longest_flush)) return false;
    of.start = of.packets.fresh_start();
    if (of.accesses) of.access_start = of.accesses.fresh_start();
    of.serving.silence();
    of.accesses.silence();
    of.silenced_at = now_;
    if (!of.packets.restart()) {
      close(of, errc::link_down, "a queue pair cannot be used again: " + device_.text());
      return true;
    }
  }
  if (told_until_ <= of.silenced_at) return false;  // what came between the last look and the reset
  tokens_ += static_cast<std::int32_t>(of.accesses.outstanding());
  of.accesses.retired = of.accesses.posted;
  if (of.packets.outstanding() != 0) retire_packets(of, of.packets.posted - 1);
  if (of.accesses_are == access_state::broken && is_own_fault(of.culprit) && of.under_way.size() != 0) {
    const access& first = of.under_way[0];
    if (first.what == access_kind::put_with_flag && first.all_posted) --of.flags_sent;
    finish_first(of, of.culprit);
  }
  of.culprit = errc::link_down;  // what is behind it failed with the connection
  return true;
}

/// The peer counts the flags that arrive. The one that came last tells of all accesses before it, since a connection keeps their
/// order: they were carried out, and puts among them must not be done again, for what they wrote may have been used since.
void endpoint::settle_accesses(link& of, std::uint32_t flags_arrived) {
  std::uint32_t arrived = flags_arrived - (of.flags_sent - of.flags_under_way());  // of those under way
  of.flags_sent = flags_arrived;
  std::uint32_t proven = 0;
  for (std::uint32_t i = 0; arrived != 0; ++i) {
    if (of.under_way[i].what != access_kind::put_with_flag) continue;
    --arrived;
    proven = i + 1;
  }
  std::vector<std::pair<operation*, errc>> ended;
  for (std::uint32_t i = 0, count = of.under_way.size(); i < count; ++i) {
    access a = of.under_way[0];
    of.under_way.pop();
    const bool unknown = is_atomic(a.what) && has_begun(a);
    const bool carried_out = i < proven && a.what != access_kind::get;
    if (!unknown && !carried_out) {
      a.all_posted = false;
      a.posted = 0;
      of.under_way.push() = a;
      continue;
    }
    if (holds_packets(a.what)) --of.puts_held;
    let_go(a);
    ended.emplace_back(a.op, unknown ? errc::outcome_unknown : errc::success);
  }
  for (const auto& [op, how] : ended)
    if (!leaving_) op->complete(how);
}

}  // namespace verbena::transport::verbs
