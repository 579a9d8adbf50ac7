// Puts, gets and atomics: taken, posted as room allows, ended by completions; and the queue pair they go over, which is
// made at the first one and made anew after one was refused.
#include "transport/verbs/endpoint.hpp"

#include "transport/verbs/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace verbena::transport::verbs {
namespace {

constexpr std::uint32_t most_requests = access_ring::most;  // on an access queue pair at a time
constexpr std::size_t most_per_doorbell = 16;
constexpr std::int32_t tokens_for_words = 16;

}  // namespace

post_result endpoint::refuse(operation& op, errc why) {
  op.start();
  op.result.error = why;
  failures_.push_back(op);
  return post_result::pending;
}

std::size_t endpoint::complete_failures() {
  std::size_t ended = 0;
  for (; !leaving_ && !failures_.empty(); ++ended) {
    operation& op = failures_.pop_front();
    op.complete(op.result.error);
  }
  for (; !leaving_ && !refused_.empty(); ++ended) {
    operation& op = *refused_.back();
    refused_.pop_back();
    op.complete(errc::out_of_memory);
  }
  return ended;
}

region endpoint::register_memory(buffer local) {
  if (local.size == 0) return {*registered_, nullptr, false, registered_->key_of(local, {})};
  const hold held = registered_->add(local);
  return held ? region{*registered_, held.entry, held.kept, registered_->key_of(local, held)} : region{};
}

region endpoint::register_for_transfer(buffer local) {
  if (local.size == 0) return register_memory(local);
  const hold held = registered_->take(local);
  return held ? region{*registered_, held.entry, held.kept, registered_->key_of(local, held)} : region{};
}

void endpoint::vouch(buffer block) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
  registered_->kept().vouch({begin, begin + block.size});
}

void endpoint::forget(const std::byte* block) noexcept {
  registered_->kept().forget(reinterpret_cast<std::uintptr_t>(block));
}

post_result endpoint::start(peer to, access_kind what, buffer local, const remote_key& key,
                            std::uint64_t offset, std::uint64_t first, std::uint64_t second, operation& op) {
  link* const l = find(to);
  if (l == nullptr || !l->reachable() || l->accesses_are == access_state::refused) return post_result::down;
  if (is_atomic(what) && !limits(to).native_atomics) return post_result::down;
  const std::uint64_t bytes = is_atomic(what) ? sizeof(std::uint64_t) : local.size;
  if (key.handle != checksum_of(key) || offset > key.size || bytes > key.size - offset)
    return refuse(op, errc::access_denied);
  if (is_atomic(what) &&
      ((key.address + offset) % sizeof(std::uint64_t) != 0 || local.size < sizeof(std::uint64_t)))
    return refuse(op, errc::invalid_argument);
  if (bytes == 0 && what != access_kind::put_with_flag) return post_result::done;
  const bool needs_word =
      is_atomic(what) || (what == access_kind::put_with_flag && inline_bytes_ < sizeof first);
  if (!l->up() || l->under_way.full() || (needs_word && !words_.any())) return post_result::again;

  hold own;
  std::uint32_t local_key = 0;
  const bool copied = is_put(what) && bytes <= inline_bytes_;
  if (!is_atomic(what) && !copied) {
    own = registered_->take_again({local.data, bytes});
    if (!own) return post_result::down;  // it can go by packets
    local_key = own.mr()->lkey;
  }
  op.start();
  access& a = l->under_way.push();
  a.what = what;
  a.op = &op;
  a.local = local.data;
  a.size = bytes;
  a.remote = key.address + offset;
  a.remote_key = key.keys[0];
  a.local_key = local_key;
  a.first = first;
  a.second = second;
  a.own = own;
  if (needs_word) a.word = words_.take();
  a.has_word = needs_word;
  if (holds_packets(what)) ++l->puts_held;
  look_after(*l);
  return post_result::pending;
}

/// Posts what waits, and remembers the link if some has to wait on.
void endpoint::look_after(link& to) {
  const bool connected = connect_accesses(to);
  const bool said = say_what_is_owed(to);
  const bool posted = pump(to);
  if ((connected && said && posted) || to.busy) return;
  to.busy = true;
  busy_.push_back(&to);
}

/// Posts the requests of accesses in order, several at a time. False: some wait for room.
bool endpoint::pump(link& to) {
  if (!to.up()) return true;
  std::uint32_t at = 0;
  while (at < to.under_way.size() && to.under_way[at].all_posted) ++at;
  if (at == to.under_way.size()) return true;
  if (to.accesses_are == access_state::closed) open_accesses(to);
  if (to.accesses_are != access_state::open) return true;  // the word that it is open comes here again

  std::array<ibv_send_wr, most_per_doorbell> requests;
  std::array<ibv_sge, most_per_doorbell> pieces;
  std::array<std::uint64_t, most_per_doorbell> flags;
  std::size_t count = 0;
  auto ring = [&] {
    if (count == 0) return;
    for (std::size_t i = 0; i + 1 < count; ++i) requests[i].next = &requests[i + 1];
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(to.accesses.get(), requests.data(), &bad) != 0)
      close(to, errc::link_down, "the device takes no more requests: " + device_.text());
    count = 0;
  };
  auto add = [&](ibv_wr_opcode opcode, const std::byte* data, std::size_t bytes,
                 std::uint32_t key) -> ibv_send_wr& {
    ibv_send_wr& r = requests[count];
    r = {};
    pieces[count] = {reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(bytes), key};
    r.wr_id = name(request::access, to, to.accesses.posted);
    r.sg_list = &pieces[count];
    r.num_sge = bytes == 0 ? 0 : 1;
    r.opcode = opcode;
    if (to.accesses.posted % signal_every == signal_every - 1) r.send_flags = IBV_SEND_SIGNALED;
    ++count;
    ++to.accesses.posted;
    --tokens_;
    return r;
  };
  const std::size_t most_bytes = std::min<std::size_t>(device_.port.max_msg_sz, std::size_t{1} << 30);
  bool all = true;
  for (; at < to.under_way.size() && to.up(); ++at) {
    access& a = to.under_way[at];
    while (!a.all_posted) {
      const bool with_flag = a.what == access_kind::put_with_flag;
      if (count + 2 > most_per_doorbell) ring();
      if (to.accesses.outstanding() + 2 > most_requests || tokens_ < tokens_for_words ||
          (with_flag && to.flags_sent - to.flags_given_back >= to.there.head.flags)) {
        all = false;
        break;
      }
      const std::size_t piece = std::min(a.size - a.posted, most_bytes);
      ibv_send_wr* last = nullptr;
      if (is_atomic(a.what)) {
        last =
            &add(a.what == access_kind::fetch_add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
                 words_.at(a.word), sizeof(std::uint64_t), words_.key());
        last->wr.atomic = {a.remote, a.first, a.second, a.remote_key};
      } else if (piece != 0) {
        last = &add(a.what == access_kind::get ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, a.local + a.posted,
                    piece, a.local_key);
        last->wr.rdma = {a.remote + a.posted, a.remote_key};
        if (is_put(a.what) && a.size <= inline_bytes_) last->send_flags |= IBV_SEND_INLINE;
      }
      a.posted += piece;
      if (!is_atomic(a.what) && a.posted != a.size) continue;
      if (with_flag) {
        ++to.flags_sent;
        if (a.has_word) {
          std::memcpy(words_.at(a.word), &a.first, sizeof a.first);
          last = &add(IBV_WR_SEND, words_.at(a.word), sizeof a.first, words_.key());
        } else {
          flags[count] = a.first;
          last = &add(IBV_WR_SEND, reinterpret_cast<const std::byte*>(&flags[count]), sizeof a.first, 0);
          last->send_flags |= IBV_SEND_INLINE;
        }
      }
      last->send_flags |= IBV_SEND_SIGNALED;
      a.all_posted = true;
      a.last = to.accesses.posted - 1;
    }
    if (!all) break;
  }
  ring();
  return all;
}

void endpoint::let_go(access& a) noexcept {
  registered_->give_back(a.own);
  if (a.has_word) words_.give_back(a.word);
}

void endpoint::finish_first(link& of, errc why) {
  access a = of.under_way[0];
  of.under_way.pop();
  if (holds_packets(a.what)) --of.puts_held;
  if (why == errc::success) of.lived.was_of_use();
  if (is_atomic(a.what) && why == errc::success && !leaving_)
    std::memcpy(a.local, words_.at(a.word), sizeof(std::uint64_t));
  let_go(a);
  if (!leaving_) a.op->complete(why);
}

/// Request `number` on the access queue pair is over, and so are all before it.
void endpoint::retire_accesses(link& of, std::uint32_t number, ibv_wc_status status) {
  queue_pair& q = of.accesses;
  const std::uint32_t over = number + 1 - q.retired;
  if (over == 0 || over > q.outstanding()) return;
  const bool failed = status != IBV_WC_SUCCESS;
  // What is before the first request that failed was carried out, what is behind it not: the device keeps the order.
  q.retired += failed ? over - 1 : over;
  while (of.accesses_are == access_state::open && of.under_way.size() != 0 && of.under_way[0].all_posted &&
         static_cast<std::int32_t>(q.retired - of.under_way[0].last) > 0)
    finish_first(of, errc::success);
  if (failed) ++q.retired;
  tokens_ += static_cast<std::int32_t>(over);
  if (!failed) return;
  if (of.accesses_are == access_state::open) {
    of.accesses_are = access_state::broken;
    of.culprit = row_of(status).code;
  }
  reopen_when_flushed(of);
}

/// The first access is the one that failed; nothing behind it was carried out.
void endpoint::reopen_when_flushed(link& of) {
  if (of.accesses_are != access_state::broken || !of.up() || of.accesses.outstanding() != 0) return;
  for (std::uint32_t i = 0; i < of.under_way.size(); ++i) {
    access& a = of.under_way[i];
    if (a.what == access_kind::put_with_flag && a.all_posted) --of.flags_sent;
    a.all_posted = false;
    a.posted = 0;
  }
  if (of.under_way.size() != 0) finish_first(of, std::exchange(of.culprit, errc::link_down));
  of.access_start = of.accesses.fresh_start();
  if (!of.accesses.restart())
    return close(of, errc::link_down, "a queue pair cannot be used again: " + device_.text());
  ask_to_open(of);
  look_after(of);
}

/// The access queue pair is new, or as good as new. The question goes out with what is owed.
void endpoint::ask_to_open(link& to) noexcept {
  ++to.round;  // an answer to an older question is none
  to.accesses_are = access_state::opening;
  to.owes_open = true;
}

void endpoint::open_accesses(link& to) {
  to.accesses = queue_pair(device_, domain_.get(), completions_.get(), receives_.get(),
                           {.sends = most_requests + 1, .inline_bytes = inline_bytes_, .access = 0});
  if (!to.accesses || to.accesses.inline_bytes() < inline_bytes_) return refuse_accesses(to);
  roles_[to.accesses.number()] = {&to, owner::accesses};
  to.access_start = first_number_;
  ask_to_open(to);
  if (!say_what_is_owed(to) && !to.busy) {
    to.busy = true;
    busy_.push_back(&to);
  }
}

/// Connects what the peer asked for, or agreed to. False: later, for there was no time for it.
bool endpoint::connect_accesses(link& of) {
  for (const bool asked : {true, false}) {
    bool& waits = asked ? of.was_asked : of.was_answered;
    if (!waits || !of.up()) continue;
    if (connecting_took_ > most_connecting) return false;
    waits = false;
    const base::nanoseconds start = base::steady_now();
    if (asked)
      on_open(of, of.asked);
    else
      on_opened(of, of.answered);
    connecting_took_ += base::steady_now() - start;
  }
  return true;
}

/// The peer wants to reach our memory, for the first time or again.
void endpoint::on_open(link& from, const control& word) {
  const bool fresh = !from.serving;
  if (fresh) {
    from.serving =
        queue_pair(device_, domain_.get(), completions_.get(), receives_.get(),
                   {.sends = 1,
                    .inline_bytes = 0,
                    .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC});
    if (from.serving) roles_[from.serving.number()] = {&from, owner::serving};
  }
  if (from.serving &&
      ((!fresh && !from.serving.restart()) ||
       !from.serving.receive_from(device_, from.there.head, word.number, word.start & 0xffffff)))
    return break_for_accesses(from);
  from.opened_round = word.round;
  from.owes_opened = true;
}

void endpoint::on_opened(link& from, const control& word) {
  if (from.accesses_are != access_state::opening || word.round != from.round) return;
  if (word.number == 0) return refuse_accesses(from);
  if (!from.accesses.receive_from(device_, from.there.head, word.number, 0) ||
      !from.accesses.begin_sending(device_, from.there.head, from.access_start))
    return break_for_accesses(from);
  from.accesses_are = access_state::open;
}

/// It is there, and cannot be connected just now, as with the interface down: the packets' connection would not be mended
/// either before that is over, and with it the question comes again.
void endpoint::break_for_accesses(link& of) {
  break_off(
      of, errc::link_down,
      fmt::format("{} to rank {}, accesses to memory: a queue pair cannot be connected: does the address of "
                  "the other side answer? {}",
                  device_.text(), of.who.index, port_words()),
      now_);
}

/// One of the two devices has no room for a queue pair: what was taken ends, the rest goes by packets.
void endpoint::refuse_accesses(link& to) {
  to.accesses_are = access_state::refused;
  while (to.under_way.size() != 0) {
    access a = to.under_way[0];
    to.under_way.pop();
    if (holds_packets(a.what)) --to.puts_held;
    let_go(a);
    if (!leaving_) refused_.push_back(a.op);
  }
}

}  // namespace verbena::transport::verbs
