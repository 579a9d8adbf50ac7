#include "transport/verbs/mending.hpp"

#include <algorithm>

namespace verbena::transport::verbs {
namespace {

/// How many incarnations `theirs` is ahead of `mine`.
std::int32_t ahead(std::uint32_t theirs, std::uint32_t mine) noexcept {
  return static_cast<std::int32_t>(theirs - mine);
}

bool asks(const letter& news) noexcept {
  return news.what == letter_kind::broken || news.what == letter_kind::listens;
}

}  // namespace

void mending::break_off(base::nanoseconds now, base::nanoseconds since, base::nanoseconds timeout) noexcept {
  is_ = stage::draining;
  if (++incarnation_ == 0) ++incarnation_;  // 0 is in no letter
  has_heard_ = false;
  broken_at_ = since;
  timeout_ = timeout;
  looked_at_ = now;
  absent_ = heard_at_ = write_at_ = connect_at_ = 0;
}

deed mending::drained(base::nanoseconds now) noexcept {
  is_ = stage::asking;
  write_at_ = now;
  connect_at_ = now;
  return has_heard_ ? deed::connect : deed::nothing;  // the peer was faster; or `look` writes
}

deed mending::hear(const letter& news, base::nanoseconds now) noexcept {
  const std::int32_t newer = ahead(news.incarnation, incarnation_);
  if (is_ == stage::up) {
    if (newer == 0 && news.what == letter_kind::listens) return deed::say_up;  // the last one was lost
    return newer > 0 && asks(news) ? deed::break_off : deed::nothing;
  }
  if (news.what == letter_kind::given_up) return deed::given_up;
  if (newer < 0) return deed::nothing;  // it hears of the newer one from us
  if (newer > 0) {
    if (!asks(news)) return deed::nothing;
    incarnation_ = news.incarnation;
  }
  heard_at_ = now;
  if (is_ == stage::listening && newer == 0) {  // its first letter was looked at, and what it tells is final
    if (news.what == letter_kind::broken) return deed::say_listens;  // the one before was lost
    return go_on(news.what == letter_kind::listens ? deed::go_on_and_say_up : deed::go_on);
  }
  if (!asks(news)) return deed::nothing;
  heard_ = news;
  has_heard_ = true;
  if (is_ == stage::listening) {  // what was made may have begun to carry something
    is_ = stage::draining;
    return deed::stop;
  }
  return is_ == stage::asking && now >= connect_at_ ? deed::connect : deed::nothing;
}

deed mending::connected(connecting how, base::nanoseconds now) noexcept {
  if (how != connecting::yes) {
    connect_at_ = how == connecting::later ? now : now + between_tries;
    return deed::nothing;
  }
  is_ = stage::listening;
  if (heard_.what == letter_kind::listens) return go_on(deed::go_on_and_say_up);
  return deed::say_listens;
}

deed mending::carried() noexcept {
  return is_ == stage::listening ? go_on(deed::go_on) : deed::nothing;
}

deed mending::look(base::nanoseconds now, bool may_write) noexcept {
  if (is_ == stage::up) return deed::nothing;
  // Of a rank that made no call nobody can expect that it mends anything; but this comes to an end as well.
  if (now - looked_at_ > longest_gap) absent_ = std::min(absent_ + (now - looked_at_), timeout_);
  looked_at_ = now;
  base::nanoseconds end = broken_at_ + absent_ + timeout_;
  if (heard_at_ != 0) end = std::max(end, std::min(heard_at_ + after_a_letter, end + timeout_));
  if (now >= end) return deed::give_up;
  if (is_ == stage::draining) return deed::nothing;
  if (is_ == stage::asking && has_heard_ && now >= connect_at_) return deed::connect;
  if (now < write_at_ || !may_write) return deed::nothing;
  return is_ == stage::asking ? deed::say_broken : deed::say_listens;
}

bool fits(const standing& here, const letter& news) noexcept {
  return news.arrived - here.given_back <= here.sent - here.given_back &&
         news.sent - here.arrived <= here.lease &&
         news.flags_arrived - (here.flags_sent - here.flags_under_way) <= here.flags_under_way &&
         news.flags_arrived - here.flags_given_back <= here.flags_sent - here.flags_given_back;
}

}  // namespace verbena::transport::verbs
