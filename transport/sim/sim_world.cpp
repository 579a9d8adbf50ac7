#include "transport/sim/sim_world.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::transport::sim {

sim_world::sim_world(const world_options& options)
    : options_(options), sessions_(options.has_session()), random_(options.seed), endpoints_(options.size) {
  base::check(options.again_ppm <= 900'000, "sim: a post must succeed sometimes");
  base::check(options.window > 0 && options.events_per_poll > 0, "sim: a window or a poll of nothing");
  base::check(options.loss_ppm <= 500'000, "sim: a packet must arrive sometimes");
  if (options.link_outage.until > options.link_outage.from) {
    const std::uint32_t index = pool_.take();
    pool_[index].what = parcel_kind::cut;
    pool_[index].from = pool_[index].to = any_peer;
    schedule(index, options.link_outage.from);
  }
}

bool sim_world::step() {
  while (!agenda_.empty()) {
    const agenda::entry event = agenda_.take();
    parcel& p = pool_[event.index];
    p.place = parcel_place::loose;
    if (p.what == parcel_kind::none) {
      pool_.give_back(event.index);
      continue;
    }
    now_ = event.time;
    arrive(event.index);
    return true;
  }
  return false;
}

std::span<const std::uint32_t> sim_world::take_woken() {
  handed_out_.clear();
  handed_out_.swap(woken_);
  for (const std::uint32_t index : handed_out_) endpoints_[index].woken = false;
  return handed_out_;
}

void sim_world::arrive(std::uint32_t index) {
  parcel& p = pool_[index];
  switch (p.what) {
    case parcel_kind::flag:
      if (sessions_) return deliver_flag(index);
      [[fallthrough]];
    case parcel_kind::packet:
      if (reachable(p.to)) return to_inbox(p.to, index);
      counted_.add(counter::lost_with_the_dead);
      return release(index);
    case parcel_kind::sequenced:
    case parcel_kind::answer:
      return hear(index);
    case parcel_kind::timer:
      return look_at_clock(index);
    case parcel_kind::cut:
      break_links(options_.link_outage);
      return release(index);
    case parcel_kind::mend:
      mend_links(p.words[0]);
      return release(index);
    case parcel_kind::proposal:
    case parcel_kind::agreed:
      return hear_point(index);
    case parcel_kind::completion:
      bring_back(p);
      end_in_session(p);
      return to_inbox(p.from, index);
    case parcel_kind::down:
      if (reachable(p.to)) return to_inbox(p.to, index);
      return release(index);
    case parcel_kind::nudge:
      endpoints_[p.from].nudged = false;
      wake(p.from);
      return release(index);
    case parcel_kind::death: {
      const peer who{p.to};
      release(index);
      return kill(who);
    }
    case parcel_kind::shared:
      return carry_out_shared(index);
    case parcel_kind::stranded:
      return;  // waits for the news
    default:
      return carry_out(index);
  }
}

void sim_world::carry_out(std::uint32_t index) {
  parcel& p = pool_[index];
  if (!endpoints_[p.to].alive) {
    if (p.op == nullptr) return release(index);
    p.what = parcel_kind::stranded;
    return;
  }
  const errc result = apply(p, p.local.size);
  if (result == errc::success && p.what == parcel_kind::put_with_flag) tell_flag(p);
  answer(index, result);
}

void sim_world::tell_flag(const parcel& put) {
  const std::uint32_t flag = pool_.take();
  parcel& f = pool_[flag];
  f.what = parcel_kind::flag;
  f.from = put.from;
  f.to = put.to;
  f.words[0] = put.words[0];
  f.head_of_session = put.head_of_session;
  if (sessions_)
    deliver_flag(flag);
  else
    to_inbox(f.to, flag);
}

void sim_world::carry_out_shared(std::uint32_t index) {
  parcel& p = pool_[index];
  const auto offered = static_cast<std::uint32_t>(p.words[0]);
  if (!endpoints_[p.to].alive) {  // its offer went with it
    p.what = parcel_kind::stranded;
    return;
  }
  if (const parcel& o = pool_[offered]; o.what != parcel_kind::offered || o.serial != p.words[1])
    return answer(index, errc::peer_failed);  // the offering process has left
  if (p.local.size != 0) std::memcpy(p.local.data, pool_[offered].local.data, p.local.size);
  answer(offered, errc::success);
  answer(index, errc::success);
}

errc sim_world::apply(parcel& p, std::size_t most) noexcept {
  const bool atomic = p.what == parcel_kind::fetch_add || p.what == parcel_kind::compare_swap;
  const std::size_t size = atomic ? sizeof(std::uint64_t) : p.local.size;
  std::byte* at = endpoints_[p.to].attached ? endpoints_[p.to].keys.resolve(p.key, p.offset, size) : nullptr;
  if (at == nullptr) {
    counted_.add(counter::keys_refused);
    return errc::access_denied;
  }
  if (atomic) {
    if (reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0 ||
        p.local.size < sizeof(std::uint64_t))
      return errc::invalid_argument;
    auto& word = *reinterpret_cast<std::uint64_t*>(at);
    const std::uint64_t old = word;
    if (p.what == parcel_kind::fetch_add)
      word = old + p.words[0];
    else if (old == p.words[0])
      word = p.words[1];
    p.words[0] = old;
    return errc::success;
  }
  if (p.what == parcel_kind::get) {
    p.bytes.assign(at, at + size);
    return errc::success;
  }
  const std::byte* source = p.op == nullptr ? p.bytes.data() : p.local.data;
  if (const std::size_t moved = std::min(size, most); moved != 0) std::memmove(at, source, moved);
  return errc::success;
}

void sim_world::answer(std::uint32_t index, errc error) {
  parcel& p = pool_[index];
  if (p.op == nullptr) return release(index);
  p.error = error;
  p.asked = p.what;
  p.what = parcel_kind::completion;
  schedule(index, now_ + delay() + passing(p.bytes.size()));
}

/// What an operation fetched reaches its poster's memory.
void sim_world::bring_back(parcel& p) noexcept {
  if (p.error != errc::success) return;
  if (p.asked == parcel_kind::get && !p.bytes.empty())
    std::memcpy(p.local.data, p.bytes.data(), p.bytes.size());
  else if (p.asked == parcel_kind::fetch_add || p.asked == parcel_kind::compare_swap)
    std::memcpy(p.local.data, &p.words[0], sizeof p.words[0]);
}

void sim_world::schedule(std::uint32_t index, base::nanoseconds time) {
  pool_[index].place = parcel_place::agenda;
  agenda_.enter(time, index);
}

void sim_world::to_inbox(std::uint32_t owner, std::uint32_t index) {
  endpoint& at = endpoints_[owner];
  pool_[index].place = parcel_place::inbox;
  pool_[index].next = no_parcel;
  if (at.inbox_first == no_parcel)
    at.inbox_first = index;
  else
    pool_[at.inbox_last].next = index;
  at.inbox_last = index;
  wake(owner);
}

void sim_world::wake(std::uint32_t index) {
  endpoint& at = endpoints_[index];
  if (!at.alive || at.woken) return;
  at.woken = true;
  woken_.push_back(index);
}

base::nanoseconds sim_world::delay() {
  const auto latency = static_cast<base::nanoseconds>(options_.limits.latency_us * 1000.0F);
  const auto most = static_cast<std::uint32_t>(options_.jitter);
  return latency + (most == 0 ? 0 : random_.below(most + 1));
}

base::nanoseconds sim_world::passing(std::size_t bytes) const noexcept {
  return static_cast<base::nanoseconds>(static_cast<double>(bytes) /
                                        static_cast<double>(options_.limits.bandwidth_gbs));
}

}  // namespace verbena::transport::sim
