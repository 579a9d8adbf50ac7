// Packets, answers and goodbyes on their way out: through the link's ring, where they stay until they are acknowledged.
#include "transport/tcp/endpoint.hpp"

#include "base/check.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::transport::tcp {
namespace {

constexpr std::size_t room_for_words =
    4096;  // answers and goodbyes do not wait for packets to be acknowledged

}  // namespace

std::byte* endpoint::prepare(peer to, std::size_t size, post_result& result) noexcept {
  base::check(size <= payload_bytes, "tcp: a packet larger than packet_bytes");
  link* const l = find(to);
  if (l == nullptr || dead_ || !l->reachable()) {
    result = post_result::down;
    return nullptr;
  }
  const std::size_t bytes = sizeof(packet_head) + size;
  if (l->state != link_state::up || !l->talk.may_post() ||
      l->out_end - l->kept_from + bytes + room_for_words > l->out.size()) {
    if (l->state == link_state::idle) seek(*l, 0);
    result = post_result::again;
    return nullptr;
  }
  preparing_ = l;
  preparing_bytes_ = bytes;
  return l->out.at(l->out_end) + sizeof(packet_head);
}

void endpoint::commit(envelope head) noexcept {
  link& l = *preparing_;
  std::byte* const at = l.out.at(l.out_end);
  l.out_end += preparing_bytes_;
  // The cookie is where the packet ends: once it is acknowledged, nothing before that is needed.
  const packet_head whole{
      {static_cast<std::uint32_t>(preparing_bytes_), frame_kind::packet, l.talk.packet(l.out_end, now_)},
      head};
  std::memcpy(at, &whole, sizeof whole);
  l.owed_bytes = 0;
  if (!l.is_stuffed) pump(l);
}

/// Gives the kernel what it takes. False: not all; the link is in stuffed_ then.
bool endpoint::pump(link& to) noexcept {
  while (!to.all_written()) {
    const auto left = static_cast<std::size_t>(to.out_end - to.unwritten_from);
    const ssize_t taken =
        ::send(to.socket.get(), to.out.at(to.unwritten_from), left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken > 0) {
      to.unwritten_from += static_cast<std::uint64_t>(taken);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) to.failure = errno;  // it is broken, which the next poll finds
    if (!to.is_stuffed) {
      to.is_stuffed = true;
      stuffed_.push_back(&to);
    }
    return false;
  }
  return true;
}

/// Nothing is kept: begins again at the ring's beginning, which is in the cache.
void endpoint::shrink(link& l) noexcept {
  if (!l.talk.sent().all_acknowledged() || !l.all_written() || l.out_end == l.kept_from) return;
  l.kept_from = l.unwritten_from = l.out_end = l.out.next_start(l.out_end);
}

void endpoint::pump_the_stuffed() noexcept {
  std::size_t left = 0;
  for (std::size_t i = 0; i < stuffed_.size(); ++i) {
    link& l = *stuffed_[i];
    const bool open = l.socket && l.state == link_state::up;
    const std::uint64_t before = l.unwritten_from;
    const bool done = !open || pump(l);
    if (open && l.unwritten_from != before) ++steps_;
    if (!done) {
      stuffed_[left++] = &l;
      continue;
    }
    l.is_stuffed = false;
    if (open && l.watches_room) {
      l.watches_room = false;
      watch(l.socket.get(), EPOLLIN, name(source::link, l.who.index), true);
    }
  }
  stuffed_.resize(left);
}

/// An answer or a goodbye: through the ring as well, so that it never falls into the middle of a packet. False: no room.
bool endpoint::say(link& to, frame_kind what) noexcept {
  if (to.state != link_state::up || to.out_end - to.kept_from + sizeof(frame_head) > to.out.size())
    return false;
  const frame_head word{sizeof(frame_head), what, {0, to.talk.answer().acknowledged}};
  std::memcpy(to.out.at(to.out_end), &word, sizeof word);
  to.out_end += sizeof word;
  to.owed_bytes = 0;
  ++steps_;
  if (!to.is_stuffed) pump(to);
  shrink(to);
  return true;
}

/// Something was heard that is to be acknowledged, by a packet the other way if one goes soon.
void endpoint::owe(link& to) noexcept {
  if (to.is_owing) return;
  to.is_owing = true;
  owing_.push_back(&to);
}

/// `all`: also what is not due yet, since this rank is about to sleep.
void endpoint::pay(bool all) noexcept {
  std::size_t left = 0;
  for (std::size_t i = 0; i < owing_.size(); ++i) {
    link& l = *owing_[i];
    const base::nanoseconds due = l.talk.heard().answer_due();
    bool owes = l.state == link_state::up && due != base::never;
    // While the socket takes nothing, answers would only pile up behind what it does not take.
    if (owes && !l.is_stuffed && (all || due <= now_ || l.owed_bytes >= how_.ring_bytes / 4))
      owes = !say(l, frame_kind::answer);
    if (owes)
      owing_[left++] = &l;
    else
      l.is_owing = false;
  }
  owing_.resize(left);
}

}  // namespace verbena::transport::tcp
