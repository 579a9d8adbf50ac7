// Links that break for a time: what is lost with them, how two endpoints agree where they stood, and what then
// goes out again. What had been posted gets through up to some point in the order of posting and nothing behind
// it does, save copies of packets that turn up when the next connection stands; of what got through, the answer
// may be lost.
#include "transport/sim/sim_world.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <utility>

namespace verbena::transport::sim {

bool sim_world::covered(std::uint32_t a, std::uint32_t b) const noexcept {
  return std::any_of(outages_.begin(), outages_.end(),
                     [&](const outage& o) { return o.until > now_ && o.covers(a, b); });
}

void sim_world::break_links(const outage& what) {
  base::check(sessions_, "sim: an outage in a world without sessions");
  base::check(what.until > now_, "sim: an outage that is over before it begins");
  counted_.add(counter::outages);
  outages_.push_back(what);
  const std::uint32_t index = pool_.take();
  parcel& p = pool_[index];
  p.what = parcel_kind::mend;
  p.from = p.to = any_peer;
  p.words[0] = outages_.size() - 1;
  schedule(index, what.until);
  for (std::uint32_t a = 0; a < size(); ++a)
    for (std::uint32_t b = a + 1; b < size(); ++b)
      if (what.covers(a, b) && (find_side(a, b) != nullptr || find_side(b, a) != nullptr)) cut(a, b);
}

void sim_world::mend_links(std::size_t number) {
  const outage over = outages_[number];  // until == now_: it covers nobody any more
  for (std::uint32_t a = 0; a < size(); ++a)
    for (std::uint32_t b = a + 1; b < size(); ++b)
      if (over.covers(a, b) && !covered(a, b) && (find_side(a, b) != nullptr || find_side(b, a) != nullptr))
        connect_again(a, b);
}

void sim_world::cut(std::uint32_t a, std::uint32_t b) {
  if (!endpoints_[a].alive || !endpoints_[b].alive) return;  // the death decides
  side_of(a, b).talk.break_off();
  side_of(b, a).talk.break_off();
  cut_one_way(a, b);
  cut_one_way(b, a);
}

void sim_world::cut_one_way(std::uint32_t from, std::uint32_t to) {
  bool gets_through = true;
  for (const std::uint32_t index : in_order_of_posting([&](const parcel& p) {
         return p.place == parcel_place::agenda && p.from == from && p.to == to;
       })) {
    gets_through = gets_through && !random_.chance(300'000);
    switch (pool_[index].what) {
      case parcel_kind::sequenced:
        if (gets_through) break;
        if (random_.chance(500'000))
          hold_late(index);
        else
          release(index);
        break;
      case parcel_kind::answer:
        if (!gets_through) release(index);
        break;
      case parcel_kind::proposal:
      case parcel_kind::agreed:
        release(index);
        break;
      case parcel_kind::put:
      case parcel_kind::put_with_flag:
      case parcel_kind::get:
      case parcel_kind::fetch_add:
      case parcel_kind::compare_swap:
        cut_operation(lift(index), gets_through);
        break;
      case parcel_kind::completion: {
        if (pool_[index].asked == parcel_kind::shared || pool_[index].asked == parcel_kind::offered) break;
        const std::uint32_t lifted = lift(index);
        parcel& p = pool_[lifted];
        if (p.error == errc::success && random_.chance(500'000)) {
          p.what = parcel_kind::parked;  // carried out, and its poster does not know
        } else {
          bring_back(p);
          end_in_session(p);
          to_inbox(from, lifted);
        }
        break;
      }
      default:
        break;
    }
  }
}

/// A one-sided operation was on its way.
void sim_world::cut_operation(std::uint32_t index, bool gets_through) {
  parcel& p = pool_[index];
  if (gets_through && p.what != parcel_kind::get) {
    const std::uint64_t words[2] = {p.words[0], p.words[1]};
    if (apply(p, p.local.size) == errc::success && p.what == parcel_kind::put_with_flag) tell_flag(p);
    std::copy(std::begin(words), std::end(words), std::begin(p.words));
    if (p.op == nullptr) return release(index);
  }
  p.asked = p.what;
  p.what = parcel_kind::parked;
}

/// Takes a parcel off the agenda, which keeps its shell.
std::uint32_t sim_world::lift(std::uint32_t index) {
  const std::uint32_t fresh = pool_.take();
  parcel& old = pool_[index];
  parcel& p = pool_[fresh];
  p = std::move(old);
  p.place = parcel_place::loose;
  old.what = parcel_kind::none;
  old.op = nullptr;
  old.holds_window = old.in_session = false;
  if (p.in_session) side_of(p.from, p.to).talk.renamed(p.position, fresh);
  return fresh;
}

void sim_world::hold_late(std::uint32_t index) {
  const std::uint32_t fresh = lift(index);
  pool_[fresh].place = parcel_place::held;
  side_of(pool_[fresh].to, pool_[fresh].from).late.push_back(fresh);
}

void sim_world::connect_again(std::uint32_t a, std::uint32_t b) {
  if (!endpoints_[a].alive || !endpoints_[b].alive || side_of(a, b).severed) return;
  side_of(b, a);  // so that it is broken, too, if it is new
  send_point(a, b, parcel_kind::proposal, side_of(a, b).talk.propose());
}

void sim_world::send_point(std::uint32_t from, std::uint32_t to, parcel_kind what,
                           const session::resume_point& point) {
  const std::uint32_t index = pool_.take();
  parcel& p = pool_[index];
  p.what = what;
  p.from = from;
  p.to = to;
  p.serial = serial_++;
  p.bytes.resize(sizeof point);
  session::put(p.bytes.data(), point);
  launch(index, p.bytes.size());
}

void sim_world::hear_point(std::uint32_t index) {
  const parcel& p = pool_[index];
  const std::uint32_t self = p.to, other = p.from;
  side& here = side_of(self, other);
  std::span<const std::byte> bytes(p.bytes);
  const auto point = session::take_resume_point(bytes);
  base::check(point.has_value() && bytes.empty(), "sim: a resume point does not decode");
  const bool asked = p.what == parcel_kind::proposal;
  release(index);
  if (!endpoints_[self].alive || here.severed) return;

  const auto give_back = [this](std::uint64_t cookie) { give_back_retained(cookie); };
  const auto end = [this](std::uint64_t cookie, session::kind, errc error) { end_parked(cookie, error); };
  session::resume_point answer;
  const session::agreement result = asked ? here.talk.accept(*point, answer, now_, give_back, end)
                                          : here.talk.agree(*point, now_, give_back, end);
  if (result == session::agreement::impossible) return sever(self, other);
  base::check(result == session::agreement::agreed, "sim: two sides of a link do not agree");
  if (asked)
    send_point(self, other, parcel_kind::agreed, answer);
  else
    counted_.add(counter::resumes);
  come_back_up(self, other);
}

void sim_world::end_parked(std::uint64_t cookie, errc error) {
  const auto index = static_cast<std::uint32_t>(cookie);
  parcel& p = pool_[index];
  base::check(p.what == parcel_kind::parked, "sim: an operation ends that is under way");
  p.in_session = false;
  if (error != errc::success) counted_.add(counter::outcomes_unknown);
  if (p.op == nullptr) return release(index);
  p.error = error;
  p.what = parcel_kind::completion;
  to_inbox(p.from, index);
}

void sim_world::come_back_up(std::uint32_t owner, std::uint32_t other) {
  side& here = side_of(owner, other);
  link& way = link_of(other, owner);
  for (const std::uint32_t index : std::exchange(here.late, {})) {
    const base::nanoseconds arrival = now_ + delay();
    way.latest = std::max(way.latest, arrival);
    schedule(index, arrival);
  }
  attend(owner, other);
}

void sim_world::sever(std::uint32_t a, std::uint32_t b) {
  cut(a, b);
  for (const auto& [self, other] : {std::pair{a, b}, std::pair{b, a}}) {
    side_of(self, other).severed = true;
    abandon(self, other);
    if (!reachable(self)) continue;
    const std::uint32_t index = pool_.take();
    parcel& p = pool_[index];
    p.what = parcel_kind::down;
    p.error = errc::link_down;
    p.from = other;
    p.to = self;
    p.serial = serial_++;
    schedule(index, now_ + delay());
  }
}

/// Nothing will be sent again: what the session keeps goes, but for the operations, whose poster is to hear of it.
void sim_world::abandon(std::uint32_t owner, std::uint32_t other) {
  side* const here = find_side(owner, other);
  if (here == nullptr) return;
  here->talk.abandon([&](const session::entry& e) {
    const auto index = static_cast<std::uint32_t>(e.cookie);
    parcel& p = pool_[index];
    p.in_session = false;
    if (e.what == session::kind::packet || (p.what == parcel_kind::parked && p.op == nullptr)) release(index);
  });
  for (const std::uint32_t index : std::exchange(here->flags, {})) {
    pool_[index].place = parcel_place::loose;
    release(index);
  }
  for (const std::uint32_t index : std::exchange(here->late, {})) {
    pool_[index].place = parcel_place::loose;
    release(index);
  }
}

}  // namespace verbena::transport::sim
