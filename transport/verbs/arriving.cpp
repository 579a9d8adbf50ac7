// Completions: what came in becomes arrivals, what went out is retired.
#include "transport/verbs/endpoint.hpp"

#include "base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

namespace verbena::transport::verbs {
namespace {

constexpr std::size_t arrivals_per_gather = 64;
constexpr int completions_per_look = 16;
constexpr std::uint32_t gathers_per_news = 64;
constexpr base::nanoseconds longest_without_news = 50 * base::millisecond;  // of a rank that calls seldom

}  // namespace

std::span<const arrival> endpoint::gather(base::nanoseconds now, const peer* only, std::size_t& steps) {
  arrivals_.clear();
  held_.clear();
  now_ = now;
  connecting_took_ = 0;
  steps_ = complete_failures();
  std::size_t handled = 0;
  // What was seen before comes before what is seen now; what does not fit stays in order.
  std::size_t left = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (arrivals_.size() >= arrivals_per_gather || !handle(kept_[i], only))
      kept_[left++] = kept_[i];
    else
      ++handled;
  kept_.resize(left);
  bool all_seen = false;
  if (left == 0 || only != nullptr)
    for (int looks = 0; looks < 8 && !all_seen && arrivals_.size() < arrivals_per_gather; ++looks) {
      std::array<ibv_wc, completions_per_look> found;
      const int count = ibv_poll_cq(completions_.get(), completions_per_look, found.data());
      for (int i = 0; i < count; ++i) {
        const ibv_wc& wc = found[static_cast<std::size_t>(i)];
        if (arrivals_.size() >= arrivals_per_gather || !handle(wc, only))
          kept_.push_back(wc);
        else
          ++handled;
      }
      all_seen = count < completions_per_look;
    }
  if (only == nullptr) note_what_is_told(all_seen && kept_.empty(), handled);
  if (++ticks_ % gathers_per_news == 0 || now - news_read_ >= longest_without_news || events_->any()) {
    news_read_ = now;
    read_news();
    if (look_at_device(now)) ++steps_;
    if (now >= silence_due_) look_for_silence(now);  // behind the events: they may say why
    read_mail();
  } else if (!mending_.empty()) {
    read_mail();
  }
  if (!busy_.empty()) look_after_busy();
  if (!mending_.empty()) mend_links();
  if (!closing_.empty() && only == nullptr) bury_the_closed();
  steps = steps_;
  return arrivals_;
}

/// A peer that sends a lot may keep the queue from ever being found empty. But what was in it, or kept back, at some time is
/// handled once as many completions are as there can have been.
void endpoint::note_what_is_told(bool all, std::size_t handled) noexcept {
  if (all) {
    told_until_ = now_;
    still_to_tell_ = 0;
  } else if (still_to_tell_ == 0) {
    telling_ = now_;
    still_to_tell_ = entries_ + kept_.size();
  } else if (handled < still_to_tell_) {
    still_to_tell_ -= handled;
  } else {
    told_until_ = telling_;
    still_to_tell_ = 0;
  }
}

void endpoint::look_after_busy() {
  std::size_t left = 0;
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    link& l = *busy_[i];
    const bool connected = connect_accesses(l);
    const bool said = say_what_is_owed(l);
    if (connected && said && pump(l))
      l.busy = false;
    else
      busy_[left++] = &l;
  }
  busy_.resize(left);
}

/// False: not now, for it is another peer's than `only`.
bool endpoint::handle(const ibv_wc& wc, const peer* only) {
  const auto number = static_cast<std::uint32_t>(wc.wr_id);
  const auto what = static_cast<request>(wc.wr_id >> 62);
  if (what == request::receive) {
    const auto found = roles_.find(wc.qp_num);
    if (found == roles_.end() || found->second.of->state == link_state::down) {
      to_post_.push_back(number);
      return true;
    }
    if (only != nullptr && found->second.of->who != *only) return false;
    on_receive(wc, found->second);
    return true;
  }
  ++steps_;
  link* const of = find(peer{static_cast<std::uint32_t>(wc.wr_id >> 32) & 0x3fffffff});
  if (of == nullptr || of->state == link_state::down || of->is_drained()) return true;
  const owner as = what == request::packet ? owner::packets : owner::accesses;
  if (as == owner::packets) {
    retire_packets(*of, number);
    if (wc.status != IBV_WC_SUCCESS) on_failure(*of, as, wc);
    return true;
  }
  // Behind a request that was refused the others are flushed; where none was, the queue pair has failed by itself.
  const bool of_connection = wc.status == IBV_WC_WR_FLUSH_ERR
                                 ? of->up() && of->accesses_are == access_state::open
                                 : wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR &&
                                       wc.status != IBV_WC_REM_INV_REQ_ERR &&
                                       wc.status != IBV_WC_LOC_PROT_ERR;
  if (of_connection) on_failure(*of, as, wc);
  retire_accesses(*of, number, wc.status);
  look_after(*of);
  return true;
}

void endpoint::on_receive(const ibv_wc& wc, const role& at) {
  const auto slot = static_cast<std::uint32_t>(wc.wr_id);
  link& from = *at.of;
  if (from.is_drained()) {
    const bool is_packet = at.as == owner::packets && wc.status == IBV_WC_SUCCESS;
    const deed then = is_packet ? from.mends.carried() : deed::nothing;
    if (then == deed::nothing) {
      to_post_.push_back(slot);  // the peer was told that it has not come
      return;
    }
    act(from, then);
  }
  if (wc.status != IBV_WC_SUCCESS) {
    to_post_.push_back(slot);
    ++steps_;
    if (at.as == owner::packets) on_failure(from, at.as, wc);
    return;  // on the others its sender sees it, too
  }
  const std::span<const std::byte> bytes{incoming_.at(slot), wc.byte_len};
  if (at.as == owner::packets) return on_packet(from, slot, bytes);
  std::uint64_t word = 0;
  if (at.as != owner::serving || bytes.size() != sizeof word) {
    to_post_.push_back(slot);
    return close(from, errc::malformed,
                 fmt::format("rank {} sent {} B where a flag is due", from.who.index, bytes.size()));
  }
  std::memcpy(&word, bytes.data(), sizeof word);
  arrival& a = arrivals_.emplace_back();
  a.what = arrival::kind::flag;
  a.from = from.who;
  a.word = word;
  ++from.flags_arrived;
  held_.push_back(slot);
}

void endpoint::on_packet(link& from, std::uint32_t slot, std::span<const std::byte> bytes) {
  const auto session = take<session_header>(bytes);
  const bool is_control = session && session->sequence == 0;
  bool sane = session.has_value() && session->acknowledged - from.given_back <= from.sent - from.given_back;
  if (sane && !is_control) {
    const std::uint32_t due = from.arrived + 1 == 0 ? 1 : from.arrived + 1;
    sane = session->sequence == due && bytes.size() >= sizeof(envelope) &&
           bytes.size() - sizeof(envelope) <= payload_bytes;
  }
  if (!sane || is_control) {
    if (sane) {
      given_back(from, session->acknowledged);
      on_control(from, bytes);
    } else {
      close(from, errc::malformed, fmt::format("rank {} sent a packet that cannot be", from.who.index));
    }
    to_post_.push_back(slot);
    ++steps_;
    return;
  }
  given_back(from, session->acknowledged);
  ++from.arrived;
  from.lived.was_of_use();
  arrival& a = arrivals_.emplace_back();
  a.from = from.who;
  a.head = *take<envelope>(bytes);
  a.payload = bytes;
  held_.push_back(slot);
}

void endpoint::on_control(link& from, std::span<const std::byte> bytes) {
  const auto word = take<control>(bytes);
  const bool sane = word && word->flags - from.flags_given_back <= from.flags_sent - from.flags_given_back;
  if (sane) from.flags_given_back = word->flags;
  if (!from.reachable()) return;
  const bool is_opening = sane && (word->what == control_kind::open || word->what == control_kind::opened);
  if (!from.up() && is_opening) return;  // comes again, over the next connection
  switch (sane ? word->what : control_kind{}) {
    case control_kind::credit:
      break;
    case control_kind::open:
      from.was_asked = true;
      from.asked = *word;
      break;
    case control_kind::opened:
      from.was_answered = true;
      from.answered = *word;
      break;
    case control_kind::bye:
      return close(from, errc::peer_left, {});
    default:
      return close(from, errc::malformed,
                   fmt::format("rank {} sent a control word that cannot be", from.who.index));
  }
  look_after(from);
}

void endpoint::release() noexcept {
  to_post_.insert(to_post_.end(), held_.begin(), held_.end());
  held_.clear();
  if (!to_post_.empty()) post_receives();
  // Only what is posted again counts as given back.
  for (const arrival& a : arrivals_) {
    link* const from = find(a.from);
    if (a.what == arrival::kind::packet)
      ++from->received;
    else if (a.what == arrival::kind::flag)
      ++from->flags_received;
    else
      continue;
    if (!say_what_is_owed(*from) && !from->busy) {
      from->busy = true;
      busy_.push_back(from);
    }
  }
  arrivals_.clear();
}

void endpoint::post_receives() noexcept {
  constexpr std::size_t together = 32;
  std::array<ibv_recv_wr, together> requests;
  std::array<ibv_sge, together> pieces;
  for (std::size_t at = 0; at < to_post_.size();) {
    const std::size_t count = std::min(together, to_post_.size() - at);
    for (std::size_t i = 0; i < count; ++i, ++at) {
      const std::uint32_t slot = to_post_[at];
      pieces[i] = {reinterpret_cast<std::uintptr_t>(incoming_.at(slot)), slot_bytes, incoming_.key()};
      requests[i] = {};
      requests[i].wr_id = slot;  // request::receive is 0
      requests[i].sg_list = &pieces[i];
      requests[i].num_sge = 1;
      if (i != 0) requests[i - 1].next = &requests[i];
    }
    ibv_recv_wr* bad = nullptr;
    base::check(ibv_post_srq_recv(receives_.get(), requests.data(), &bad) == 0,
                "verbs: the shared receive queue takes less than it was made for");
  }
  to_post_.clear();
}

/// About to sleep: the next completion sends an event, and what came before is looked for once more.
bool endpoint::arm() {
  ticks_ = gathers_per_news - 1;  // the next look reads the news: a death may be why it is woken
  if (!kept_.empty() || !failures_.empty() || !refused_.empty() || !closing_.empty()) return false;
  for (const link* l : mending_)
    if (l->mends.is() == mending::stage::draining) return false;
  for (const link* l : busy_)
    if (l->was_asked || l->was_answered) return false;
  if (mail_ && !mail_->arm()) return false;
  const bool hurries = !mending_.empty() || (mail_ && mail_->has_failed());
  if (watcher_) watcher_->hurry(hurries);
  if (ibv_req_notify_cq(completions_.get(), 0) != 0) return false;
  std::array<ibv_wc, completions_per_look> found;
  const int count = ibv_poll_cq(completions_.get(), completions_per_look, found.data());
  for (int i = 0; i < count; ++i) kept_.push_back(found[static_cast<std::size_t>(i)]);
  if (count > 0) return false;
  if (!how_.wake || watcher_) return true;
  try {
    watcher_ = std::make_unique<watcher>(*channel_, *events_, probe_interval() / 2, how_.wake);
    watcher_->hurry(hurries);
    return true;
  } catch (const std::exception&) {
    return false;  // no thread to be had: this rank does not sleep
  }
}

}  // namespace verbena::transport::verbs
