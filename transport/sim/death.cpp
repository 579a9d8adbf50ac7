// The death of an endpoint: what of its traffic is lost, and how the others hear of it.
#include "transport/sim/sim_world.hpp"

#include <algorithm>
#include <utility>

namespace verbena::transport::sim {

void sim_world::kill_at(peer who, base::nanoseconds time) {
  const std::uint32_t index = pool_.take();
  pool_[index].what = parcel_kind::death;
  pool_[index].from = pool_[index].to = who.index;
  schedule(index, std::max(time, now_));
}

void sim_world::kill(peer who) {
  endpoint& at = endpoints_[who.index];
  if (!at.alive) return;
  at.alive = false;
  counted_.add(counter::deaths);
  while (at.inbox_first != no_parcel) release(take_from_inbox(who.index, any_peer));
  for (std::uint32_t i = 0; sessions_ && i < size(); ++i) abandon(who.index, i);
  lose_what_it_sent(who.index);
  strand_answers_of(who.index);
  spread_the_news(who.index);
}

/// Per peer, everything up to some point gets through and nothing after it, as when a process dies between
/// two stores. Puts that get through are carried out at once: when the news arrives, nothing may be left that
/// still writes, and the dead one's memory may be gone long before.
void sim_world::lose_what_it_sent(std::uint32_t dead) {
  constexpr std::uint32_t cut_ppm = 250'000;
  std::vector<std::uint32_t> cut;  // peers that get no more
  for (const std::uint32_t index : in_order_of_posting([&](const parcel& p) { return p.from == dead; })) {
    parcel& p = pool_[index];
    const bool put = p.what == parcel_kind::put || p.what == parcel_kind::put_with_flag;
    const bool packet = p.what == parcel_kind::packet || p.what == parcel_kind::sequenced;
    const bool carried = packet || p.what == parcel_kind::flag || put || p.what == parcel_kind::fetch_add ||
                         p.what == parcel_kind::compare_swap;
    if (p.place == parcel_place::inbox || p.place == parcel_place::held) continue;  // has arrived
    if (!carried || !reachable(p.to)) {
      release(index);
      continue;
    }
    if (std::find(cut.begin(), cut.end(), p.to) == cut.end() && random_.chance(cut_ppm)) {
      cut.push_back(p.to);
      if (put && p.local.size != 0) {
        counted_.add(counter::torn_puts);
        apply(p, random_.below(static_cast<std::uint32_t>(std::min<std::size_t>(p.local.size, UINT32_MAX))));
      }
    }
    if (std::find(cut.begin(), cut.end(), p.to) != cut.end()) {
      counted_.add(counter::lost_with_the_dead);
      release(index);
      continue;
    }
    if (packet || p.what == parcel_kind::flag) continue;
    const bool done = apply(p, p.local.size) == errc::success;
    if (done && p.what == parcel_kind::put_with_flag) {
      p.what = parcel_kind::flag;
      p.op = nullptr;
    } else {
      release(index);
    }
  }
}

/// What others asked of the dead and what it already did: the answer may or may not have left.
void sim_world::strand_answers_of(std::uint32_t dead) {
  for (const std::uint32_t index : in_order_of_posting([&](const parcel& p) {
         return p.to == dead && p.what == parcel_kind::completion && p.place == parcel_place::agenda;
       }))
    if (random_.chance(500'000)) pool_[index].what = parcel_kind::stranded;
}

void sim_world::spread_the_news(std::uint32_t dead) {
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (i == dead || !reachable(i)) continue;
    const std::uint32_t index = pool_.take();
    parcel& p = pool_[index];
    p.what = parcel_kind::down;
    p.error = errc::peer_failed;
    p.from = dead;
    p.to = i;
    p.serial = serial_++;
    const auto way = links_.find((std::uint64_t{dead} << 32) | i);
    const base::nanoseconds after =
        way == links_.end() ? 0 : std::max(way->second.last_arrival, way->second.latest);
    schedule(index, std::max(now_ + delay(), after));
  }
}

void sim_world::fail_pending(std::uint32_t owner, std::uint32_t dead, errc why) {
  endpoints_[owner].down.push_back(dead);
  counted_.add(counter::peer_downs);
  if (sessions_) abandon(owner, dead);
  // A completion may post, withdraw or free: what is noted here is looked up again before it is touched.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> noted;
  for (const std::uint32_t index : in_order_of_posting(
           [&](const parcel& p) { return p.from == owner && p.to == dead && p.op != nullptr; }))
    noted.emplace_back(index, pool_[index].serial);
  for (const auto& [index, serial] : noted) {
    parcel& p = pool_[index];
    if (p.op == nullptr || p.serial != serial) continue;
    operation& op = *p.op;
    release(index);
    op.complete(why);
  }
}

}  // namespace verbena::transport::sim
