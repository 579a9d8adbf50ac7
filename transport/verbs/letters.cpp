// What is to be done so that a connection that broke is made anew (mending.hpp says what, and when): letters are written and
// read, queue pairs connected, and in the end it goes on.
#include "transport/verbs/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbena::transport::verbs {
namespace {

constexpr int deeds_per_look = 3;

}  // namespace

/// What goes by the clock.
void endpoint::mend_links() {
  for (std::size_t i = 0; i < mending_.size(); ++i) {
    link& l = *mending_[i];
    if (l.state == link_state::broken && l.mends.is() == mending::stage::draining && drain(l) &&
        l.state == link_state::broken)
      act(l, l.mends.drained(now_));
    for (int deeds = 0; deeds < deeds_per_look && l.state == link_state::broken; ++deeds)
      // With the port down a datagram would stop the mailbox, and be lost.
      act(l, l.mends.look(now_, port_down_since_ == 0));
  }
  std::erase_if(mending_, [](const link* l) { return l->state != link_state::broken; });
}

void endpoint::act(link& on, deed what) {
  switch (what) {
    case deed::nothing:
    case deed::break_off:  // `on_letter` does
      return;
    case deed::stop:
      return stop(on);
    case deed::connect: {
      const connecting how = connect(on);
      if (on.state == link_state::broken) act(on, on.mends.connected(how, base::steady_now()));
      return;
    }
    case deed::go_on:
      return go_on(on);
    case deed::go_on_and_say_up:
      go_on(on);
      if (on.up()) write(on, letter_kind::up);
      return;
    case deed::say_broken:
      return write(on, letter_kind::broken);
    case deed::say_listens:
      return write(on, letter_kind::listens);
    case deed::say_up:
      return write(on, letter_kind::up);
    case deed::give_up:
      return close(on, port_down_since_ != 0 ? errc::link_down : on.end,
                   fmt::format("{} No new connection within {} s (VERBENA_LINK_TIMEOUT_S).", on.last_words,
                               how_.link_timeout / base::second));
    case deed::given_up:
      return close(on, on.end,
                   fmt::format("{} Rank {} has given this link up.", on.last_words, on.who.index));
  }
}

void endpoint::write(link& to, letter_kind what) {
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
  text.incarnation = to.mends.incarnation();
  text.number = to.packets ? to.packets.number() : 1;  // of one that is given up there is none
  text.start = to.start;
  text.arrived = to.arrived;
  text.sent = to.sent;
  text.flags_arrived = to.flags_arrived;
  if (to.way && mail_->send(to.way.get(), to.there.head.mailbox, to.there.head.mailbox_key,
                            std::as_bytes(std::span(&text, 1))))
    to.mends.wrote(now_);  // else it is this link's turn at the next look
}

void endpoint::read_mail() {
  if (!mail_) return;
  mail_->read(now_, [this](std::span<const std::byte> bytes) {
    if (const auto news = decode_letter(bytes, identity_, static_cast<std::uint32_t>(links_.size())))
      on_letter(*news);
  });
}

void endpoint::on_letter(const letter& news) {
  link* const from = find(peer{news.rank});
  if (from == nullptr || from->there.head.identity != news.by) return;  // not, or no longer, that process
  ++steps_;
  if (from->state == link_state::absent) return;
  if (!from->reachable()) {
    if (news.what != letter_kind::broken && news.what != letter_kind::listens) return;
    from->mends.adopt(news.incarnation);
    return write(*from, letter_kind::given_up);
  }
  deed what = from->mends.hear(news, now_);
  if (what == deed::break_off) {
    break_off(*from, errc::link_down,
              fmt::format("{} to rank {}: the connection broke there. {}", device_.text(), from->who.index,
                          port_words()),
              now_);
    if (from->state != link_state::broken) return;
    what = from->mends.hear(news, now_);
  }
  act(*from, what);
}

connecting endpoint::connect(link& to) {
  if (connecting_took_ > most_connecting) return connecting::later;
  const letter& there = to.mends.heard();
  const standing here{.sent = to.sent,
                      .given_back = to.given_back,
                      .arrived = to.arrived,
                      .lease = lease_,
                      .flags_sent = to.flags_sent,
                      .flags_given_back = to.flags_given_back,
                      .flags_under_way = to.flags_under_way()};
  if (!fits(here, there)) {
    close(to, errc::malformed,
          fmt::format("what rank {} says it has received and sent does not fit together with what was sent "
                      "and received here",
                      to.who.index));
    return connecting::not_yet;
  }
  const base::nanoseconds start = base::steady_now();
  // It may fail, as while the address is not there yet.
  const bool made = find_gid_again(device_) &&
                    to.packets.receive_from(device_, to.there.head, there.number, there.start) &&
                    to.packets.begin_sending(device_, to.there.head, to.start);
  if (!made && !to.packets.restart())
    close(to, errc::link_down, "a queue pair cannot be used again: " + device_.text());
  connecting_took_ += base::steady_now() - start;
  return made ? connecting::yes : connecting::not_yet;
}

/// The peer listens: what it lacks goes out again, accesses over a connection of their own.
void endpoint::go_on(link& with) {
  with.state = link_state::up;
  with.lived.made_anew(now_);
  ++with.mended;
  with.awaited_since = 0;
  with.end = errc::success;
  with.last_words.clear();
  with.posted = with.mends.heard().arrived;
  with.owes_credit = true;
  with.owes_opened = false;  // it asks anew
  settle_accesses(with, with.mends.heard().flags_arrived);
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
