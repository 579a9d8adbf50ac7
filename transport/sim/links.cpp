// Links that lose, double and reorder: what of a packet crosses them, and the sessions that make good for it.
#include "transport/sim/sim_world.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace verbena::transport::sim {

sim_world::side* sim_world::find_side(std::uint32_t owner, std::uint32_t other) noexcept {
  const auto at = sides_.find((std::uint64_t{owner} << 32) | other);
  return at == sides_.end() ? nullptr : &at->second;
}

sim_world::side& sim_world::side_of(std::uint32_t owner, std::uint32_t other) {
  if (side* const here = find_side(owner, other)) return *here;
  const auto latency = static_cast<base::nanoseconds>(options_.limits.latency_us * 1000.0F);
  session::session_options o;
  o.identity = (std::uint64_t{std::min(owner, other)} << 32 | std::max(owner, other)) + 1;
  o.most_retained = o.peer_retains = options_.window;
  o.connected = !covered(owner, other);
  // A full window waits for its answer: a quarter of it is told without delay.
  o.answers = {std::clamp(options_.window / 4, 1U, 16U), 2 * latency + 5 * base::microsecond};
  o.repeats.after = 4 * (latency + options_.jitter) + o.answers.after + 20 * base::microsecond;
  o.repeats.give_up = 60;
  return sides_.try_emplace((std::uint64_t{owner} << 32) | other, o).first->second;
}

void sim_world::cross_link(std::uint32_t from, std::uint32_t to, session_header head, const parcel* kept) {
  link& way = link_of(from, to);
  way.free_at = std::max(way.free_at, now_) +
                passing(kept == nullptr ? session::bare_answer_bytes : kept->bytes.size());
  if (random_.chance(options_.loss_ppm)) return counted_.add(counter::lost);
  const bool twice = random_.chance(options_.duplicate_ppm);
  if (twice) counted_.add(counter::duplicated);
  for (int copies = twice ? 2 : 1; copies > 0; --copies) {
    const std::uint32_t index = pool_.take();
    parcel& p = pool_[index];
    p.what = kept == nullptr ? parcel_kind::answer : parcel_kind::sequenced;
    p.from = from;
    p.to = to;
    p.serial = serial_++;
    p.head_of_session = head;
    p.incarnation = side_of(from, to).talk.incarnation();
    if (kept != nullptr) {
      p.head = kept->head;
      p.bytes.reserve(kept->bytes.size() + 1);
      p.bytes.assign(kept->bytes.begin(), kept->bytes.end());
    }
    base::nanoseconds arrival = std::max(way.last_arrival, way.free_at + delay());
    if (random_.chance(options_.reorder_ppm)) {
      counted_.add(counter::reordered);
      arrival += random_.between(1, static_cast<std::uint32_t>(4 * delay() + 2 * base::microsecond));
    } else {
      way.last_arrival = arrival;
    }
    way.latest = std::max(way.latest, arrival);
    schedule(index, arrival);
  }
}

void sim_world::hear(std::uint32_t index) {
  parcel& p = pool_[index];
  const std::uint32_t self = p.to, other = p.from;
  if (!endpoints_[self].alive) {
    counted_.add(counter::lost_with_the_dead);
    return release(index);
  }
  side& here = side_of(self, other);
  if (here.severed) return release(index);
  session_header head = p.head_of_session;
  if (options_.drop_ack && random_.chance(200'000)) head.acknowledged = here.talk.sent().last_sent();
  const auto give_back = [this](std::uint64_t cookie) { give_back_retained(cookie); };
  const bool packet = p.what == parcel_kind::sequenced;
  const session::verdict v =
      packet ? here.talk.hear(p.incarnation, head, now_, give_back)
             : here.talk.hear_answer(p.incarnation, {head.acknowledged, head.sequence}, now_, give_back);
  switch (v) {
    case session::verdict::accepted:
      if (packet) {
        p.what = parcel_kind::packet;
        p.holds_window = true;
        deliver(index);
      } else {
        release(index);
      }
      break;
    case session::verdict::duplicate:
      counted_.add(counter::duplicates_dropped);
      release(index);
      break;
    case session::verdict::early:
      counted_.add(counter::early_dropped);
      release(index);
      break;
    case session::verdict::stale:
      counted_.add(counter::stale_dropped);
      release(index);
      break;
    case session::verdict::malformed:
      base::check(false, "sim: a session says what cannot be");
  }
  attend(self, other);
}

void sim_world::deliver(std::uint32_t index) {
  const std::uint32_t self = pool_[index].to, other = pool_[index].from;
  if (!reachable(self)) return release(index);
  to_inbox(self, index);
  // Flags that waited for this packet.
  side& here = side_of(self, other);
  while (!here.flags.empty()) {
    const std::uint32_t flag = here.flags.front();
    if (session::distance(here.talk.heard().acknowledges(), pool_[flag].head_of_session.sequence) > 0) return;
    here.flags.erase(here.flags.begin());
    pool_[flag].place = parcel_place::loose;
    to_inbox(self, flag);
  }
}

/// A flag is told after the packets that were sent before it, which may have been lost on the way.
void sim_world::deliver_flag(std::uint32_t index) {
  parcel& p = pool_[index];
  if (!reachable(p.to)) {
    counted_.add(counter::lost_with_the_dead);
    return release(index);
  }
  side& here = side_of(p.to, p.from);
  if (session::distance(here.talk.heard().acknowledges(), p.head_of_session.sequence) <= 0)
    return to_inbox(p.to, index);
  p.place = parcel_place::held;
  here.flags.push_back(index);
}

void sim_world::look_at_clock(std::uint32_t index) {
  const std::uint32_t self = pool_[index].from, other = pool_[index].to;
  side& here = side_of(self, other);
  if (here.looks_at == now_) here.looks_at = base::never;
  release(index);
  if (!endpoints_[self].alive || here.severed) return;
  if (!endpoints_[other].alive) {
    if (!endpoints_[self].attached) abandon(self, other);  // nobody is left to hear of the death
    return;
  }
  if (!here.talk.look(now_)) {
    counted_.add(counter::links_given_up);
    return sever(self, other);
  }
  attend(self, other);
}

void sim_world::attend(std::uint32_t owner, std::uint32_t other) {
  side& here = side_of(owner, other);
  here.talk.send_again(
      [&](const session::entry& e, session_header head) { return send_again(owner, other, e, head); });
  if (here.talk.wants_to_answer(now_)) {
    counted_.add(counter::acks);
    const session::bare_answer told = here.talk.answer();
    cross_link(owner, other, {told.newest, told.acknowledged}, nullptr);
  }
  if (const base::nanoseconds due = here.talk.due(); due < here.looks_at) {
    here.looks_at = std::max(due, now_);
    const std::uint32_t index = pool_.take();
    parcel& p = pool_[index];
    p.what = parcel_kind::timer;
    p.from = owner;
    p.to = other;
    schedule(index, here.looks_at);
  }
  if (link& way = link_of(owner, other); way.refused && here.talk.may_post()) {
    way.refused = false;
    wake(owner);
  }
}

bool sim_world::send_again(std::uint32_t owner, std::uint32_t other, const session::entry& e,
                           session_header head) {
  const auto index = static_cast<std::uint32_t>(e.cookie);
  if (e.what == session::kind::packet) {
    counted_.add(counter::retransmitted);
    cross_link(owner, other, head, &pool_[index]);
    return true;
  }
  parcel& p = pool_[index];
  base::check(p.what == parcel_kind::parked, "sim: an operation goes out again while it is under way");
  counted_.add(counter::replayed_one_sided);
  p.what = p.asked;
  p.serial = serial_++;
  launch(index, p.what == parcel_kind::put ? p.local.size : sizeof(remote_key));
  return true;
}

void sim_world::give_back_retained(std::uint64_t cookie) {
  release(static_cast<std::uint32_t>(cookie));
}

void sim_world::end_in_session(parcel& p) noexcept {
  if (!p.in_session) return;
  p.in_session = false;
  find_side(p.from, p.to)->talk.ended(p.position);
}

}  // namespace verbena::transport::sim
