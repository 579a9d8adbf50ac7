// A connection that broke is made anew. Both sides write letters, until they are answered, about where they stand:
//
//   asking      nothing comes in any more, so what is told is final           writes `broken`
//   listening   the peer's letter is here, the queue pairs are connected      writes `listens`
//   up          the peer listens, or sends: what it lacks goes out again      answers `listens` by `up`
//
// A connection has a number, its incarnation, that grows; letters about an older one mean nothing, one about a newer one means
// that this one broke, too. Letters that are late or doubled change nothing.
#include "transport/verbs/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbena::transport::verbs {
namespace {

constexpr base::nanoseconds between_letters = 100 * base::millisecond;

/// How many incarnations `theirs` is ahead of `mine`.
std::int32_t ahead(std::uint32_t theirs, std::uint32_t mine) {
  return static_cast<std::int32_t>(theirs - mine);
}

}  // namespace

/// What goes by the clock. All completions that are there are seen.
void endpoint::mend_links() {
  for (std::size_t i = 0; i < mending_.size(); ++i) {
    link& l = *mending_[i];
    if (l.state != link_state::broken) continue;
    if (l.looked_at != 0 && now_ - l.looked_at > base::second)
      l.broken_at += now_ - l.looked_at;  // this rank made no call, and could not mend it
    l.looked_at = now_;
    if (now_ - l.broken_at >= how_.link_timeout) {
      close(l, port_down_since_ != 0 ? errc::link_down : l.end,
            fmt::format("{} No new connection within {} s (VERBENA_LINK_TIMEOUT_S).", l.last_words,
                        how_.link_timeout / base::second));
      continue;
    }
    if (l.mends == mending::draining) {
      if (!drain(l) || l.state != link_state::broken) continue;
      if (l.heard.incarnation == l.incarnation) on_letter_of_broken(l, l.heard);  // it was faster
      if (l.state != link_state::broken) continue;
    }
    // With the port down a datagram would stop the mailbox, and be lost.
    if (now_ < l.write_at || port_down_since_ != 0) continue;
    write(l, l.mends == mending::asking ? letter_kind::broken : letter_kind::listens);
  }
  std::erase_if(mending_, [](const link* l) { return l->state != link_state::broken; });
}

void endpoint::write(link& to, letter_kind what) {
  to.write_at = now_ + between_letters;
  if (find_gid_again(device_) && to.way_from != device_.gid_index) {
    ibv_ah_attr way = way_to(device_, to.there.head);
    if (address_handle fresh{ibv_create_ah(domain_.get(), &way)}) {
      to.way = std::move(fresh);
      to.way_from = device_.gid_index;
    }
  }
  letter text;
  text.what = what;
  text.to = to.there.head.identity;
  text.by = identity_;
  text.rank = self_.index;
  text.incarnation = to.incarnation;
  text.number = to.packets ? to.packets.number() : 1;  // of one that is given up there is none
  text.start = to.start;
  text.arrived = to.arrived;
  text.sent = to.sent;
  text.flags_arrived = to.flags_arrived;
  if (to.way)
    mail_->send(to.way.get(), to.there.head.mailbox, to.there.head.mailbox_key,
                std::as_bytes(std::span(&text, 1)));
}

void endpoint::read_mail() {
  if (!mail_) return;
  mail_->read([this](std::span<const std::byte> bytes) {
    if (const auto news = decode_letter(bytes, identity_, static_cast<std::uint32_t>(links_.size())))
      on_letter(*news);
  });
}

void endpoint::on_letter(const letter& news) {
  link* const from = find(peer{news.rank});
  if (from == nullptr || from->there.head.identity != news.by) return;  // not, or no longer, that process
  ++steps_;
  const bool asks = news.what == letter_kind::broken || news.what == letter_kind::listens;
  switch (from->state) {
    case link_state::absent:
      return;
    case link_state::closing:
    case link_state::down:
      if (!asks) return;
      from->incarnation = news.incarnation;
      return write(*from, letter_kind::given_up);
    case link_state::broken:
      return on_letter_of_broken(*from, news);
    case link_state::up:
      break;
  }
  const std::int32_t newer = ahead(news.incarnation, from->incarnation);
  if (newer == 0 && news.what == letter_kind::listens)
    write(*from, letter_kind::up);  // the last one was lost
  if (newer <= 0 || !asks) return;
  break_off(*from, errc::link_down,
            fmt::format("{} to rank {}: the connection broke there. {}", device_.text(), from->who.index,
                        port_words()),
            now_);
  if (from->state == link_state::broken) on_letter_of_broken(*from, news);
}

void endpoint::on_letter_of_broken(link& from, const letter& news) {
  if (news.what == letter_kind::given_up)
    return close(from, from.end,
                 fmt::format("{} Rank {} has given this link up.", from.last_words, from.who.index));
  const std::int32_t newer = ahead(news.incarnation, from.incarnation);
  if (newer < 0) return;  // it hears of the newer one from us
  if (newer > 0) {
    from.incarnation = news.incarnation;
    if (from.mends == mending::listening) stop(from);  // it may have begun to carry something
  }
  const bool listens = news.what != letter_kind::broken;
  if (from.mends != mending::listening) from.heard = news;  // then it is this connection's, and was looked at
  if (from.mends == mending::draining) return;              // it is looked at when that is done
  if (from.mends == mending::asking) {
    listen_anew(from);
    if (from.mends != mending::listening || from.state != link_state::broken) return;
    if (!listens) return write(from, letter_kind::listens);
  }
  if (!listens) return write(from, letter_kind::listens);  // the one before was lost
  go_on(from);
  if (news.what == letter_kind::listens && from.up()) write(from, letter_kind::up);
}

/// What is told can be so.
bool endpoint::fits(link& of, const letter& news) noexcept {
  const std::uint32_t begun = of.flags_under_way();
  return news.arrived - of.given_back <= of.sent - of.given_back && news.sent - of.arrived <= lease_ &&
         news.flags_arrived - (of.flags_sent - begun) <= begun;
}

void endpoint::listen_anew(link& to) {
  if (!fits(to, to.heard))
    return close(
        to, errc::malformed,
        fmt::format("what rank {} says it has received and sent does not fit together with what was sent "
                    "and received here",
                    to.who.index));
  // If it fails, as while the address is not there yet, the next letter tries again.
  if (find_gid_again(device_) &&
      to.packets.receive_from(device_, to.there.head, to.heard.number, to.heard.start) &&
      to.packets.begin_sending(device_, to.there.head, to.start)) {
    to.mends = mending::listening;
    return;
  }
  if (!to.packets.restart())
    close(to, errc::link_down, "a queue pair cannot be used again: " + device_.text());
}

/// The peer listens: what it lacks goes out again, accesses over a connection of their own.
void endpoint::go_on(link& with) {
  with.state = link_state::up;
  with.mended_at = now_;
  ++with.mended;
  with.awaited_since = 0;
  with.end = errc::success;
  with.last_words.clear();
  with.posted = with.heard.arrived;
  with.owes_credit = true;
  with.owes_opened = false;  // it asks anew
  with.said_bye = false;
  settle_accesses(with, with.heard.flags_arrived);
  const access_state accesses = with.accesses_are;
  if (accesses == access_state::opening || accesses == access_state::open ||
      accesses == access_state::broken) {
    if (!with.accesses.restart())
      return close(with, errc::link_down, "a queue pair cannot be used again: " + device_.text());
    ask_to_open(with);
  }
  ++steps_;
  look_after(with);
}

}  // namespace verbena::transport::verbs
