// Links that break and are made again, and the end of a link: its peer has died or left, or no way to it is left. What had arrived
// is reported first; then, and only then, the sink hears of the end.
#include "transport/tcp/endpoint.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace verbena::transport::tcp {
namespace {

constexpr base::nanoseconds patience_of_the_higher = 200 * base::millisecond;  // the lower rank calls first
constexpr base::nanoseconds after_silence = 1500 * base::millisecond;
constexpr base::nanoseconds longest_farewell = 3 * base::second;
constexpr base::nanoseconds silent_wait = 10 * base::second;  // then it says for whom

/// The peer's kernel has not acknowledged all that this one was given.
bool under_way(int socket) noexcept {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

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
    if (state == base::rank_state::failed) close(*l, errc::peer_failed, {}, true);
    if (state == base::rank_state::left) close(*l, errc::peer_left, {}, true);
  }
}

/// The connection is gone, and its bytes with it; the session goes on over another one. `why`: errno; 0: an end of file
/// without a goodbye.
void endpoint::break_off(link& l, int why) {
  l.talk.break_off();
  l.socket.reset();
  if (l.state == link_state::up) --up_;
  ++l.breaks;
  if (l.failure == 0) l.failure = why;
  l.last_words = fmt::format("the connection broke: {}",
                             l.failure == 0 ? "closed by the other end" : std::strerror(l.failure));
  // The two others are what the kernel had heard of the way when it gave up.
  const bool silence = l.failure == ETIMEDOUT || l.failure == EHOSTUNREACH || l.failure == ENETUNREACH;
  const bool sought = l.state == link_state::seeking;
  if (!sought) seek(l, self_ < l.who ? 0 : patience_of_the_higher);
  // The kernel has tried for as long as the link may be down: whoever is there answers at once.
  if (silence) l.give_up_at = now_ + after_silence;
}

void endpoint::close(link& l, errc why, std::string words, bool read_on) {
  if (!l.reachable()) return;
  if (page_ && page_->record(l.who.index).state.load(std::memory_order_acquire) == base::rank_state::left)
    why = errc::peer_left;  // it did not answer because it is through
  if (l.state == link_state::up) --up_;
  l.state = link_state::ending;
  l.end = why;
  l.last_words = std::move(words);
  l.read_to_the_end = read_on && l.socket;
  hang_up(l, nullptr);
  ending_.push_back(&l);
}

void endpoint::bury(const peer* only) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < ending_.size(); ++i) {
    link& l = *ending_[i];
    const bool others = only != nullptr && l.who != *only;
    if (!others && l.read_to_the_end) read(l);
    if (others || l.read_to_the_end || l.is_behind) {
      ending_[left++] = &l;
      continue;
    }
    l.talk.abandon([](const session::entry&) noexcept {});
    l.socket.reset();
    l.out = mirrored_buffer{};  // `in` goes when nobody reads the arrivals any more
    l.state = link_state::down;
    std::replace(hot_.begin(), hot_.end(), &l, static_cast<link*>(nullptr));
    if (!l.is_touched) {
      l.is_touched = true;
      touched_.push_back(&l);
    }
    arrival& a = arrivals_.emplace_back();
    a.from = l.who;
    a.down = true;
    a.why = l.end;
  }
  ending_.resize(left);
}

/// In good order: all that was sent is with the peers' kernels, and a goodbye behind it. Who is dead or through is not waited
/// for; who does not read is, since what it was sent would be lost, and so is a broken link, for its timeout.
void endpoint::leave() {
  if (dead_ || !trusted_) return;
  const base::nanoseconds start = base::steady_now();
  bool told = false;
  for (bool waiting = true; waiting;) {
    std::size_t steps = 0;
    gather(base::steady_now(), nullptr, steps);
    release();
    waiting = false;
    const base::nanoseconds waited = now_ - start;
    for (auto& l : links_) {
      if (!l) continue;
      // Whose host refuses is through: there is nobody who could read.
      bool owes = l->state == link_state::seeking && waited < how_.link_timeout &&
                  l->failure != ECONNREFUSED && !l->talk.sent().nothing_retained();
      if (l->state == link_state::up) {
        if (!l->said_bye) l->said_bye = say(*l, frame_kind::bye);
        owes = !l->said_bye || !l->all_written() || (waited < longest_farewell && under_way(l->socket.get()));
      }
      waiting = waiting || owes;
      if (!owes || told || waited < silent_wait) continue;
      told = true;
      const std::string line =
          fmt::format("verbena: rank {} leaves and waits for rank {} to read what it was sent\n", self_.index,
                      l->who.index);
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
    if (waiting && steps == 0) ::usleep(50);
  }
}

void endpoint::die() noexcept {
  dead_ = true;
  connections_.clear();
  listeners_.clear();
  for (auto& l : links_)
    if (l) l->socket.reset();
}

void endpoint::cut(peer to, bool reset) noexcept {
  link* const l = find(to);
  if (l == nullptr || l->state != link_state::up) return;
  const sockaddr nowhere{AF_UNSPEC, {}};
  if (reset)
    ::connect(l->socket.get(), &nowhere, sizeof nowhere);
  else
    ::shutdown(l->socket.get(), SHUT_RDWR);
}

std::uint64_t endpoint::breaks(peer to) const noexcept {
  const link* const l = find(to);
  return l == nullptr ? 0 : l->breaks;
}

}  // namespace verbena::transport::tcp
