// What a sim_fabric asks of its world: posting, registering, polling.
#include "transport/sim/sim_world.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace verbena::transport::sim {

post_result sim_world::admit(std::uint32_t from, std::uint32_t to) {
  base::check(to < size(), "sim: a peer outside the world");
  endpoint& at = endpoints_[from];
  if (!at.alive || std::find(at.down.begin(), at.down.end(), to) != at.down.end()) return post_result::down;
  link& way = link_of(from, to);
  if (way.under_way >= options_.window || (sessions_ && !side_of(from, to).talk.may_post())) {
    way.refused = true;  // whoever makes room wakes the sender
    counted_.add(counter::again_full);
    return post_result::again;
  }
  if (random_.chance(options_.again_ppm)) {
    counted_.add(counter::again_by_chance);
    if (!at.nudged) {  // nothing else need be under way, so the retry is an event of its own
      at.nudged = true;
      const std::uint32_t index = pool_.take();
      pool_[index].what = parcel_kind::nudge;
      pool_[index].from = from;
      schedule(index, now_ + delay());
    }
    return post_result::again;
  }
  return post_result::done;
}

std::uint32_t sim_world::dispatch(std::uint32_t from, std::uint32_t to, parcel_kind what, std::size_t bytes) {
  const std::uint32_t index = pool_.take();
  parcel& p = pool_[index];
  p.what = what;
  p.from = from;
  p.to = to;
  p.serial = serial_++;
  p.holds_window = true;
  ++link_of(from, to).under_way;
  launch(index, bytes);
  return index;
}

void sim_world::launch(std::uint32_t index, std::size_t bytes) {
  link& way = link_of(pool_[index].from, pool_[index].to);
  way.free_at = std::max(way.free_at, now_) + passing(bytes);
  way.last_arrival = std::max(way.last_arrival, way.free_at + delay());
  schedule(index, way.last_arrival);
}

std::uint32_t sim_world::begin_packet(std::uint32_t from, std::uint32_t to, std::size_t size) {
  std::uint32_t index = 0;
  if (!sessions_) {
    index = dispatch(from, to, parcel_kind::packet, size);
  } else {
    index = pool_.take();
    parcel& p = pool_[index];
    p.what = parcel_kind::retained;
    p.from = from;
    p.to = to;
    p.serial = serial_++;
    ++link_of(from, to).under_way;  // until a copy of it is polled
  }
  parcel& p = pool_[index];
  p.bytes.reserve(size + 1);  // so that even an empty payload has a place
  p.bytes.resize(size);
  counted_.add(counter::packets);
  counted_.add(counter::packet_bytes, size);
  return index;
}

void sim_world::overtake(std::uint32_t index) {
  parcel& later = pool_[index];
  parcel* before = nullptr;
  for (std::uint32_t i = 0; i < pool_.size(); ++i) {
    parcel& p = pool_[i];
    const bool same_way = p.what == parcel_kind::packet && p.from == later.from && p.to == later.to;
    if (same_way && p.serial < later.serial && (before == nullptr || p.serial > before->serial)) before = &p;
  }
  if (before == nullptr || before->place != parcel_place::agenda || !random_.chance(100'000)) return;
  std::swap(before->head, later.head);
  std::swap(before->bytes, later.bytes);
  overtaken_ = true;
}

void sim_world::end_packet(std::uint32_t index) {
  if (options_.reorder_one && !overtaken_ && !sessions_) overtake(index);
  if (!sessions_) return;
  const parcel& p = pool_[index];
  cross_link(p.from, p.to, side_of(p.from, p.to).talk.packet(index, now_), &p);
  attend(p.from, p.to);
}

namespace {

session::kind kind_in_session(parcel_kind what) noexcept {
  switch (what) {
    case parcel_kind::put:
      return session::kind::put;
    case parcel_kind::get:
      return session::kind::get;
    case parcel_kind::put_with_flag:
      return session::kind::flag;
    default:
      return session::kind::atomic;
  }
}

}  // namespace

post_result sim_world::post_one_sided(const request& asked, operation& op) {
  if (!options_.limits.native_put) return post_result::down;
  if (const post_result answer = admit(asked.from, asked.to); answer != post_result::done) return answer;
  const bool put = asked.what == parcel_kind::put || asked.what == parcel_kind::put_with_flag;
  const std::uint32_t index =
      dispatch(asked.from, asked.to, asked.what, put ? asked.local.size : sizeof(remote_key));
  parcel& p = pool_[index];
  if (sessions_) {
    p.in_session = true;
    p.head_of_session.sequence = side_of(asked.from, asked.to).talk.sent().last_sent();
    p.position = side_of(asked.from, asked.to).talk.one_sided(kind_in_session(asked.what), index);
  }
  p.local = asked.local;
  p.key = asked.key;
  p.offset = asked.offset;
  p.words[0] = asked.words[0];
  p.words[1] = asked.words[1];
  if (asked.what == parcel_kind::get)
    counted_.add(counter::gets);
  else if (!put)
    counted_.add(counter::atomics);
  else
    counted_.add(asked.what == parcel_kind::put ? counter::puts : counter::flags);
  if (put) counted_.add(counter::put_bytes, asked.local.size);

  // A fabric that says `done` has copied the data and cannot report a wrong key later: it looks first.
  const bool small = put && asked.local.size <= options_.limits.inline_bytes;
  if (small && reachable(asked.to) && random_.chance(options_.completes_at_once_ppm) &&
      endpoints_[asked.to].keys.resolve(asked.key, asked.offset, asked.local.size) != nullptr) {
    p.bytes.assign(asked.local.data, asked.local.data + asked.local.size);
    return post_result::done;
  }
  op.start();
  p.op = &op;
  return post_result::pending;
}

post_result sim_world::offer(std::uint32_t from, std::uint32_t to, buffer local, remote_key& ticket,
                             operation& op) {
  if (const post_result answer = admit(from, to); answer != post_result::done) return answer;
  const std::uint32_t index = pool_.take();
  parcel& p = pool_[index];
  p.what = parcel_kind::offered;
  p.from = from;
  p.to = to;
  p.serial = serial_++;
  p.local = local;
  p.op = &op;
  op.start();
  ticket = {};
  ticket.size = local.size;
  ticket.handle = index;
  ticket.keys[0] = static_cast<std::uint32_t>(p.serial);
  ticket.keys[1] = static_cast<std::uint32_t>(p.serial >> 32);
  return post_result::pending;
}

std::uint32_t sim_world::find_offer(std::uint32_t from, std::uint32_t to, const remote_key& ticket) noexcept {
  if (ticket.handle >= pool_.size()) return no_parcel;
  const parcel& p = pool_[ticket.handle];
  const bool same = p.what == parcel_kind::offered && p.words[0] == 0 && p.from == from && p.to == to &&
                    p.local.size == ticket.size && ticket.keys[0] == static_cast<std::uint32_t>(p.serial) &&
                    ticket.keys[1] == static_cast<std::uint32_t>(p.serial >> 32);
  return same ? ticket.handle : no_parcel;
}

post_result sim_world::accept(std::uint32_t from, std::uint32_t to, buffer local, const remote_key& ticket,
                              operation& op) {
  endpoint& at = endpoints_[from];
  if (!at.alive || std::find(at.down.begin(), at.down.end(), to) != at.down.end()) return post_result::down;
  const std::uint32_t offered = find_offer(to, from, ticket);
  if (endpoints_[to].alive && (offered == no_parcel || local.size != ticket.size)) {
    counted_.add(counter::keys_refused);
    return post_result::down;
  }
  const std::uint32_t index = dispatch(from, to, parcel_kind::shared, local.size);
  parcel& p = pool_[index];
  p.local = local;
  p.words[0] = offered;
  p.words[1] = offered == no_parcel ? 0 : pool_[offered].serial;
  p.op = &op;
  op.start();
  if (offered != no_parcel) pool_[offered].words[0] = 1;  // taken
  counted_.add(counter::shared);
  return post_result::pending;
}

bool sim_world::withdraw(std::uint32_t from, std::uint32_t to, const remote_key& ticket) {
  const std::uint32_t offered = find_offer(from, to, ticket);
  if (offered != no_parcel) release(offered);
  return offered != no_parcel;
}

table_region sim_world::register_memory(std::uint32_t owner, buffer local) {
  if (!options_.limits.native_put) return {};
  if (random_.chance(options_.refuse_region_ppm)) {
    counted_.add(counter::regions_refused);
    return {};
  }
  key_table& keys = endpoints_[owner].keys;
  const remote_key key = keys.add(local);
  if (key.handle == 0) return {};
  counted_.add(counter::regions);
  return table_region{keys, key};
}

void sim_world::attach(std::uint32_t index) {
  base::check(index < size() && !endpoints_[index].attached, "sim: an endpoint is attached twice");
  endpoints_[index].attached = true;
}

void sim_world::detach(std::uint32_t index) {
  endpoint& at = endpoints_[index];
  at.attached = false;
  while (at.inbox_first != no_parcel) release(take_from_inbox(index, any_peer));
  // What it has pending has nobody to complete for; what it said `done` to still goes.
  for (std::uint32_t i = 0; i < pool_.size(); ++i)
    if (pool_[i].op != nullptr && pool_[i].from == index) release(i);
}

std::uint32_t sim_world::poll_budget() noexcept {
  return options_.ragged_polls ? random_.between(1, options_.events_per_poll) : options_.events_per_poll;
}

std::uint32_t sim_world::take_from_inbox(std::uint32_t owner, std::uint32_t about) noexcept {
  endpoint& at = endpoints_[owner];
  std::uint32_t before = no_parcel;
  for (std::uint32_t index = at.inbox_first; index != no_parcel; before = index, index = pool_[index].next) {
    parcel& p = pool_[index];
    const std::uint32_t other = p.what == parcel_kind::completion ? p.to : p.from;
    if (about != any_peer && other != about && p.what != parcel_kind::none) continue;
    (before == no_parcel ? at.inbox_first : pool_[before].next) = p.next;
    if (at.inbox_last == index) at.inbox_last = before;
    p.place = parcel_place::loose;
    return index;
  }
  return no_parcel;
}

void sim_world::end_poll(std::uint32_t owner) {
  if (endpoints_[owner].inbox_first != no_parcel) wake(owner);
}

void sim_world::release(std::uint32_t index) {
  parcel& p = pool_[index];
  p.op = nullptr;
  end_in_session(p);
  if (p.holds_window) {
    p.holds_window = false;
    link& way = link_of(p.from, p.to);
    --way.under_way;
    if (way.refused) {
      way.refused = false;
      wake(p.from);
    }
  }
  p.what = parcel_kind::none;
  if (p.place == parcel_place::loose) pool_.give_back(index);
}

}  // namespace verbena::transport::sim
