// How connections come to be: calling a peer over all ways at once, the first that is proven counts; taking others' calls; and
// what becomes of two calls that cross.
#include "transport/tcp/endpoint.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::transport::tcp {
namespace {

constexpr base::nanoseconds second_thought =
    250 * base::millisecond;                              // then the ways that are `later` are called, too
constexpr base::nanoseconds dead_way = 2 * base::second;  // a way that answers nothing is left
constexpr base::nanoseconds first_pause = 5 * base::millisecond, longest_pause = 500 * base::millisecond;
constexpr base::nanoseconds pause_of_who_yields = 100 * base::millisecond;
constexpr base::nanoseconds pause_of_listener = 100 * base::millisecond;
constexpr int callers_per_look = 32;

const char* text_of_failure(int failure) noexcept {
  if (failure == 0) return "no answer";
  return failure == EPROTO ? "what answers there does not prove that it belongs to this job"
                           : std::strerror(failure);
}

}  // namespace

/// A connection is wanted. Calls are made by the polls that follow.
void endpoint::seek(link& l, base::nanoseconds delay) noexcept {
  l.state = link_state::seeking;
  l.call_at = delay == 0 ? 0 : now_ + delay;
  l.give_up_at = 0;  // set by the first look: a post knows no time
  l.pause = first_pause;
  l.called_later = true;
  if (std::find(seeking_.begin(), seeking_.end(), &l) == seeking_.end()) seeking_.push_back(&l);
  next_look_ = 0;
}

void endpoint::add(base::unique_fd socket, link* to, handshake&& begun, std::size_t by) {
  const std::uint64_t number = next_connection_++;
  base::watch_link(socket.get(), how_.link_timeout);
  // An edge for each change: a conversation goes on until it can not.
  watch(socket.get(), EPOLLIN | EPOLLOUT | EPOLLET, name(source::connection, number), false);
  connections_.push_back(std::make_unique<connection>(number, std::move(socket), to, std::move(begun), now_));
  connections_.back()->by = by;
  advance(*connections_.back());
}

void endpoint::call(link& l, bool later) {
  for (std::size_t i = 0; i < l.ways.size(); ++i) {
    const way& w = l.ways[i];
    if (w.later != later || l.state != link_state::seeking) continue;
    const bool under_way = std::any_of(connections_.begin(), connections_.end(),
                                       [&](const auto& c) { return c->to == &l && c->by == i && !c->done; });
    if (under_way) continue;
    base::unique_fd fd{
        ::socket(w.to.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    socklen_t bytes = 0;
    const sockaddr_storage at = socket_address(w.to, l.there.port, w.scope, bytes);
    if (!fd ||
        (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), bytes) != 0 && errno != EINPROGRESS)) {
      l.failure = errno;
      continue;
    }
    add(std::move(fd), &l, handshake(mine_, l.who.index, l.there.self), i);
  }
}

void endpoint::accept_callers() {
  for (const base::unique_fd& each : listeners_)
    if (!accept_callers(each.get())) return;
}

/// False: out of descriptors or memory, and nobody is heard for a while.
bool endpoint::accept_callers(int listener) {
  for (int i = 0; i < callers_per_look; ++i) {
    base::unique_fd fd{::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (!fd) {
      if (errno == EAGAIN) return true;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Who has called longest without a proof makes room.
      if (drop_oldest_caller()) {
        sweep();
        continue;
      }
      watch_listeners(false);
      listen_again_at_ = now_ + pause_of_listener;
      return false;
    }
    const auto callers =
        static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                               [](const auto& c) { return c->to == nullptr && !c->done; }));
    if (callers >= most_callers) drop_oldest_caller();
    add(std::move(fd), nullptr, handshake(mine_));
  }
  return true;
}

void endpoint::watch_listeners(bool on) noexcept {
  for (const base::unique_fd& each : listeners_)
    watch(each.get(), on ? EPOLLIN : 0U, name(source::listener, 0), true);
}

bool endpoint::drop_oldest_caller() noexcept {
  for (auto& c : connections_) {  // in the order of their calls
    if (c->to != nullptr || c->done) continue;
    c->done = true;
    c->socket.reset();
    return true;
  }
  return false;
}

void endpoint::advance(connection& c) {
  if (!c.done && !converse(c)) c.done = true;
}

/// False: the kernel has not taken all of it. (`failure`: it never will.)
bool endpoint::flush(connection& c) noexcept {
  while (!c.talk.to_send().empty()) {
    const auto bytes = c.talk.to_send();
    const ssize_t taken = ::send(c.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken > 0) {
      c.talk.sent(static_cast<std::size_t>(taken));
      c.reached = true;
    } else if (errno != EINTR) {
      if (errno != EAGAIN) c.failure = errno;
      return false;
    }
  }
  return true;
}

/// Says and hears what can be said and heard now. False: it is over without a result.
bool endpoint::converse(connection& c) {
  for (;;) {
    if (!flush(c)) return c.failure == 0;
    const auto room = c.talk.room();
    if (room.empty()) return false;  // all was said, and it led to nothing
    const ssize_t got = ::recv(c.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      c.failure = got == 0 ? ECONNRESET : errno;
      return false;
    }
    ++steps_;
    on_news(c, c.talk.got(static_cast<std::size_t>(got)));
    if (c.done) return true;
  }
}

void endpoint::on_news(connection& c, handshake::news what) {
  switch (what) {
    case handshake::news::none:
      return;
    case handshake::news::named: {
      const link* const from = find(peer{c.talk.peer()});
      if (from == nullptr || !from->reachable())
        c.done = true;
      else
        c.talk.greet(from->there.self);
      return;
    }
    case handshake::news::proven: {
      link& l = *c.to;
      if (l.state != link_state::seeking || !make_buffers(l)) {
        c.done = true;
        return;
      }
      hang_up(l, &c);  // the first that is proven counts
      c.proposed = true;
      return c.talk.propose(l.talk.propose());
    }
    case handshake::news::proposed:
      c.done = true;
      return on_proposal(c);
    case handshake::news::answered:
      c.done = true;
      return on_answer(c);
    case handshake::news::failed:
      c.failure = EPROTO;
      c.done = true;
      return;
  }
}

bool endpoint::make_buffers(link& l) {
  if (!l.out) l.out = mirrored_buffer(how_.ring_bytes);
  if (!l.in) l.in = mirrored_buffer(in_bytes);
  if (l.out && l.in) return true;
  l.failure = errno;
  return false;
}

/// A caller has proven who it is, and says where its session stands.
void endpoint::on_proposal(connection& c) {
  link& l = *find(peer{c.talk.peer()});
  if (!l.reachable() || !make_buffers(l)) return;
  const bool asked = std::any_of(connections_.begin(), connections_.end(), [&](const auto& other) {
    return other->to == &l && other->proposed && !other->done;
  });
  // Of two calls that cross the lower rank's stands: a call of the same incarnation that comes after the agreement, too.
  const bool crossed = l.state == link_state::up && c.talk.point().incarnation == l.talk.incarnation();
  if (crossed || (asked && self_ < l.who)) {
    c.talk.answer(verdict::yielded, {});
    flush(c);
    return;
  }
  session::resume_point mine;
  const session::agreement how = l.talk.accept(
      c.talk.point(), mine, now_, [&](std::uint64_t end) noexcept { l.kept_from = end; },
      [](std::uint64_t, session::kind, errc) noexcept {});
  switch (how) {
    case session::agreement::agreed:
      c.talk.answer(verdict::agreed, mine);
      if (flush(c)) return establish(l, std::move(c.socket));
      return break_off(
          l, c.failure != 0 ? c.failure : EAGAIN);  // 64 bytes, and a new socket has no room for them
    case session::agreement::repeated:
    case session::agreement::outdated:
      c.talk.answer(verdict::outdated, {});
      flush(c);
      return;
    case session::agreement::other_peer:
    case session::agreement::impossible:
      c.talk.answer(verdict::refused, {});
      flush(c);
      return close(l, errc::link_down,
                   fmt::format("what rank {} has received and sent does not fit together with what was "
                               "sent and received here",
                               l.who.index));
  }
}

/// Whom we called has proven who it is and decided.
void endpoint::on_answer(connection& c) {
  link& l = *c.to;
  c.proposed = false;
  if (l.state != link_state::seeking) return;
  switch (c.talk.said()) {
    case verdict::agreed: {
      const session::agreement how = l.talk.agree(
          c.talk.point(), now_, [&](std::uint64_t end) noexcept { l.kept_from = end; },
          [](std::uint64_t, session::kind, errc) noexcept {});
      if (how == session::agreement::agreed) return establish(l, std::move(c.socket));
      break;
    }
    case verdict::yielded:
      l.talk.break_off();
      l.call_at = now_ + pause_of_who_yields;
      l.called_later = true;
      return;
    case verdict::outdated:
      l.talk.break_off();
      l.call_at = now_;
      return;
    case verdict::refused:
      break;
  }
  close(l, errc::link_down,
        fmt::format("rank {} and this one do not agree on what was sent and received", l.who.index));
}

/// Both ends agree: the link goes on over this socket.
void endpoint::establish(link& l, base::unique_fd socket) {
  hang_up(l, nullptr);
  l.socket = std::move(socket);
  if (const std::size_t by = way_of_socket(l.ways, l.socket.get()); by != no_way) l.proven = by;
  watch(l.socket.get(), EPOLLIN, name(source::link, l.who.index), true);
  if (l.state != link_state::up) ++up_;
  l.state = link_state::up;
  l.failure = 0;
  l.watches_room = false;
  l.in_end = l.unread_from;        // what came of an unfinished frame comes again
  l.unwritten_from = l.kept_from;  // all that the peer lacks lies behind it, in order
  l.talk.send_again([](const session::entry&, session_header) noexcept { return true; });
  shrink(l);
  l.heard_at = ticks_;
  heat(l);
  ++steps_;
  if (!l.is_stuffed) pump(l);
}

/// Drops all calls to a peer but one.
void endpoint::hang_up(const link& l, const connection* but) noexcept {
  for (auto& c : connections_) {
    if (c->to != &l || c.get() == but) continue;
    c->proposed = false;  // the session does not wait for it any more
    c->done = true;
  }
}

void endpoint::sweep() noexcept {
  std::erase_if(connections_, [](const auto& c) {
    if (!c->done) return false;
    if (c->to != nullptr && c->failure != 0) c->to->failure = c->failure;
    if (c->proposed) c->to->talk.break_off();
    return true;
  });
}

/// What goes by the clock: calls that are not answered, and those that are to be made.
void endpoint::look_at_seekers() {
  if (now_ < next_look_) return;
  next_look_ = now_ + base::millisecond;
  if (listen_again_at_ != 0 && now_ >= listen_again_at_) {
    listen_again_at_ = 0;
    watch_listeners(true);
  }
  for (auto& c : connections_) {
    const bool silent =
        c->to == nullptr ? now_ - c->since > caller_patience : !c->reached && now_ - c->since > dead_way;
    if (!silent) continue;
    c->failure = ETIMEDOUT;
    c->done = true;
  }
  sweep();
  std::erase_if(seeking_, [&](link* l) { return !seek_on(*l); });
  sweep();
}

/// False: it seeks no more.
bool endpoint::seek_on(link& l) {
  if (l.state != link_state::seeking) return false;
  if (l.give_up_at == 0) l.give_up_at = now_ + how_.link_timeout;
  // Where the peer was found before, or, if it never was, wherever something listens and says nothing, its process may be stopped,
  // or busy: that lasts as long as it lasts. Elsewhere silence means nothing.
  bool calls = false, listens = false;
  for (const auto& c : connections_) {
    if (c->to != &l || c->done) continue;
    calls = true;
    listens = listens || (c->reached && (l.proven == no_way || c->by == l.proven));
  }
  if (!l.called_later && (!calls || now_ - l.called_at > second_thought)) {
    l.called_later = true;
    call(l, true);
  } else if (now_ >= l.call_at) {
    if (!calls) {
      l.called_at = now_;
      l.called_later = false;
    }
    l.call_at = now_ + l.pause;
    l.pause = std::min(2 * l.pause, longest_pause);
    call(l, false);
    if (l.called_later) call(l, true);
  }
  if (l.state != link_state::seeking) return false;
  if (!listens && now_ >= l.give_up_at)
    close(l, errc::link_down,
          fmt::format("no connection to rank {} within {} s (VERBENA_LINK_TIMEOUT_S): {}", l.who.index,
                      how_.link_timeout / base::second, text_of_failure(l.failure)));
  return l.state == link_state::seeking;
}

}  // namespace verbena::transport::tcp
