// What comes in: sockets are read, frames become arrivals.
#include "transport/tcp/endpoint.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace verbena::transport::tcp {
namespace {

// How often a poll looks for what is not read in every poll: a caller now and then; at once where somebody is not proven yet,
// or more links are up than are hot.
constexpr std::uint64_t gathers_per_quiet_look = 64, gathers_per_look = 4;
constexpr int events_per_look = 32;

}  // namespace

std::span<const arrival> endpoint::gather(base::nanoseconds now, const peer* only, std::size_t& steps) {
  arrivals_.clear();
  now_ = now;
  steps_ = 0;
  steps = 0;
  if (dead_ || !trusted_) return arrivals_;
  ++ticks_;
  read_news();
  if (!behind_
           .empty()) {  // what was seen before comes before what is seen now, each peer's first in its turn
    std::rotate(behind_.begin(), behind_.begin() + 1, behind_.end());
    std::size_t left = 0;
    for (std::size_t i = 0; i < behind_.size(); ++i) {
      link& l = *behind_[i];
      l.is_behind = (only != nullptr && l.who != *only) || take_frames(l);
      if (l.is_behind) behind_[left++] = &l;
    }
    behind_.resize(left);
  }
  if (only == nullptr) {
    for (std::size_t i = 0; i < hot_.size(); ++i)
      if (link* const l = hot_[(ticks_ + i) % hot_.size()]; l != nullptr && l->state == link_state::up)
        read(*l);
  } else if (link* const l = find(*only); l != nullptr && l->state == link_state::up) {
    read(*l);
  }
  const bool often = up_ > most_hot || !connections_.empty() || !seeking_.empty();
  if (ticks_ % (often ? gathers_per_look : gathers_per_quiet_look) == 0) look_at_events(only);
  if (!seeking_.empty() || !connections_.empty() || listen_again_at_ != 0) look_at_seekers();
  if (!stuffed_.empty()) pump_the_stuffed();
  if (!owing_.empty()) pay(false);
  if (!ending_.empty()) bury(only);
  steps = steps_;
  return arrivals_;
}

/// One look at a socket. Nothing is read behind what did not fit into arrivals_.
void endpoint::read(link& from) {
  if (from.is_behind || arrivals_.size() >= arrivals_per_gather) return;
  const std::size_t room = from.in.size() - static_cast<std::size_t>(from.in_end - from.held_from);
  if (room == 0) return;
  ssize_t got = 0;
  do {
    got = ::recv(from.socket.get(), from.in.at(from.in_end), room, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    ++steps_;
    from.in_end += static_cast<std::uint64_t>(got);
    from.owed_bytes += static_cast<std::uint32_t>(got);
    from.heard_at = ticks_;
    if (take_frames(from)) {
      from.is_behind = true;
      behind_.push_back(&from);
    }
    return;
  }
  const int why = got < 0 ? errno : 0;
  if (from.state == link_state::ending)
    from.read_to_the_end = false;  // no more has arrived
  else if (why == 0 && from.said_bye)
    close(from, errc::peer_left, {});  // it has heard our goodbye
  else if (why != EAGAIN)
    break_off(from, why);
}

/// Turns frames that are whole into arrivals. True: there are more than there is room for.
bool endpoint::take_frames(link& from) {
  if (!from.is_touched) {
    from.is_touched = true;
    touched_.push_back(&from);
  }
  for (;;) {
    std::span<const std::byte> bytes{from.in.at(from.unread_from),
                                     static_cast<std::size_t>(from.in_end - from.unread_from)};
    const std::size_t there = bytes.size();
    frame f;
    const reading what = take_frame(bytes, f);
    if (what == reading::partial) return false;
    if (what == reading::malformed) {
      close(from, errc::malformed, fmt::format("rank {} sent what is no frame", from.who.index));
      from.read_to_the_end = false;
      return false;
    }
    if (arrivals_.size() >= arrivals_per_gather || from.reported >= arrivals_per_link) return true;
    from.unread_from += there - bytes.size();
    if (!on_frame(from, f)) return false;
  }
}

/// False: nothing behind it counts.
bool endpoint::on_frame(link& from, const frame& f) {
  const auto free_ring = [&](std::uint64_t end) noexcept { from.kept_from = end; };
  const std::uint32_t connection = from.talk.incarnation();
  ++steps_;
  session::verdict heard = session::verdict::malformed;
  if (f.kind == frame_kind::packet)
    heard = from.talk.hear(connection, f.session, now_, free_ring);
  else
    heard =
        from.talk.hear_answer(connection, {f.session.acknowledged, f.session.acknowledged}, now_, free_ring);
  shrink(from);
  if (heard == session::verdict::malformed || heard == session::verdict::early) {
    close(from, errc::malformed,
          fmt::format("rank {} sent a packet that cannot be: number {}, acknowledging {}", from.who.index,
                      f.session.sequence, f.session.acknowledged));
    from.read_to_the_end = false;
    return false;
  }
  if (f.kind == frame_kind::bye) {
    if (!from.said_bye) from.said_bye = say(from, frame_kind::bye);  // so that it knows that all has arrived
    close(from, errc::peer_left, {});
    from.read_to_the_end = false;  // it was the last
    return false;
  }
  if (f.kind == frame_kind::answer) return true;
  owe(from);
  if (heard != session::verdict::accepted) return true;
  ++from.reported;
  arrival& a = arrivals_.emplace_back();
  a.from = from.who;
  a.head = f.head;
  a.payload = f.payload;
  return true;
}

void endpoint::release() noexcept {
  for (link* const l : touched_) {
    l->is_touched = false;
    l->reported = 0;
    l->held_from = l->unread_from;
    if (l->state == link_state::down) {
      l->in = mirrored_buffer{};
      continue;
    }
    if (l->unread_from == l->in_end) l->held_from = l->unread_from = l->in_end = l->in.next_start(l->in_end);
  }
  touched_.clear();
  arrivals_.clear();
}

/// Makes a link one of those that are read in every poll, in the place of the one that was silent longest.
void endpoint::heat(link& l) noexcept {
  link** place = &hot_[0];
  for (link*& h : hot_) {
    if (h == &l) return;
    if (*place != nullptr && (h == nullptr || h->heard_at < (*place)->heard_at)) place = &h;
  }
  *place = &l;
}

void endpoint::look_at_events(const peer* only) {
  std::array<epoll_event, events_per_look> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events_per_look, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t who = events[static_cast<std::size_t>(i)].data.u64;
    const std::uint64_t number = who & ((std::uint64_t{1} << 62) - 1);
    switch (static_cast<source>(who >> 62)) {
      case source::listener:
        accept_callers();
        break;
      case source::connection: {
        const auto at = std::find_if(connections_.begin(), connections_.end(),
                                     [&](const auto& c) { return c->number == number; });
        if (at != connections_.end()) advance(**at);
        break;
      }
      case source::link: {
        link* const l = find(peer{static_cast<std::uint32_t>(number)});
        if (l == nullptr || l->state != link_state::up || (only != nullptr && l->who != *only)) break;
        const std::uint64_t before = l->heard_at;
        read(*l);
        if (l->heard_at != before) heat(*l);
        break;
      }
    }
  }
  sweep();
}

/// About to sleep: what is owed is said, and from here on the helper thread rings.
bool endpoint::arm() {
  if (dead_ || !trusted_) return true;
  pay(true);
  if (!behind_.empty() || !ending_.empty()) return false;
  for (link* const l : stuffed_)
    if (l->state == link_state::up && !l->watches_room) {
      l->watches_room = true;
      watch(l->socket.get(), EPOLLIN | EPOLLOUT, name(source::link, l->who.index), true);
    }
  if (how_.wake) {
    try {
      if (!watcher_) watcher_ = std::make_unique<watcher>(epoll_.get(), how_.wake);
      watcher_->arm();
    } catch (const std::exception&) {
      return false;  // no thread to be had: this rank does not sleep
    }
  }
  ticks_ |= gathers_per_quiet_look - 1;  // the next poll looks at everything
  pollfd any{epoll_.get(), POLLIN, 0};
  return ::poll(&any, 1, 0) == 0;
}

void endpoint::disarm() noexcept {
  if (watcher_) watcher_->disarm();
}

}  // namespace verbena::transport::tcp
