// What goes wrong with a connection or with the device, and the sentence it becomes.
#include "transport/verbs/endpoint.hpp"

#include "transport/verbs/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace verbena::transport::verbs {
namespace {

constexpr base::nanoseconds event_interval = 10 * base::millisecond;
constexpr std::uint32_t few_receives = 8;
constexpr base::nanoseconds longest_silence = all_tries + base::second;  // of the device about a request

}  // namespace

/// "The port here is ACTIVE. Before that the device said: ..."
std::string endpoint::port_words() const {
  ibv_port_attr port{};
  const bool asked = ibv_query_port(device_.context.get(), device_.port_number, &port) == 0;
  return fmt::format("The port here is {}.{}{}", asked ? port_state_text(port.state) : "gone",
                     remark_.empty() ? "" : " Last the device said ", remark_);
}

/// A request or the receiving of one failed, and with it the connection. It is made anew if that could help.
void endpoint::on_failure(link& of, owner as, const ibv_wc& wc) {
  if (!of.up()) return;  // expected: it is stopped
  const status_row& row = row_of(wc.status);
  if (events_->read()) look_at_device(now_);  // it may have said why
  if (!of.up()) return;
  // With our own port down nothing is known of the peer.
  const bool unknown_end =
      row.code == errc::access_denied || row.code == errc::invalid_argument || port_down_since_ != 0;
  const errc why = unknown_end ? errc::link_down : row.code;
  std::string words =
      fmt::format("{} to rank {}, {}: {}: {} (vendor's code {}); look at: {} {}", device_.text(),
                  of.who.index, as == owner::packets ? "packets" : "accesses to memory", row.name,
                  row.meaning, wc.vendor_err, row.look_at, port_words());
  const bool of_connection = row.code == errc::peer_failed || row.code == errc::link_down;
  if (!of_connection || wc.status == IBV_WC_FATAL_ERR) return close(of, why, std::move(words));
  // What got no answer was tried for a while: since then the link counts as broken.
  break_off(of, why, std::move(words), wc.status == IBV_WC_RETRY_EXC_ERR ? now_ - all_tries : now_);
}

/// True: there was something.
bool endpoint::look_at_device(base::nanoseconds now) {
  if (now - events_read_ >= (watcher_ ? probe_interval() : event_interval)) {
    events_read_ = now;
    events_->read();
  }
  if (receives_low_) watch_receives();
  const bool found = events_->any();
  if (found)
    for (const device_event& event : events_->take()) on_event(event, now);
  if (port_down_since_ != 0 && now - port_down_since_ >= how_.link_timeout) {
    port_down_since_ = 0;  // once is enough: no link is left
    close_all(
        errc::link_down,
        fmt::format("{}: no link for {} s: is its cable in, and its interface up (rdma link, ip link)? {}",
                    device_.text(), how_.link_timeout / base::second, port_words()));
  }
  return found;
}

void endpoint::on_event(const device_event& event, base::nanoseconds now) {
  const event_row& row = *event.row;
  const std::string words = fmt::format("{} ({})", row.name, row.meaning);
  switch (row.follows) {
    case consequence::none:
      return;
    case consequence::port_down:
      remark_ = words + ".";
      if (port_down_since_ == 0) port_down_since_ = base::steady_now();  // `now` is old after a long computation
      return;
    case consequence::port_up:
      remark_ = words + ".";
      return on_port_up(now);
    case consequence::address:
      return on_address_change(event);
    case consequence::receives_low:
      receives_low_ = true;
      return;
    case consequence::queue_pair: {
      // Of the other two a failed access tells, which is done again where it should be.
      const auto found = roles_.find(event.number);
      if (found != roles_.end() && found->second.as == owner::packets && found->second.of->up())
        break_off(
            *found->second.of, errc::link_down,
            fmt::format("{} to rank {}, packets: {}", device_.text(), found->second.of->who.index, words),
            now);
      return;
    }
    case consequence::all:
      remark_ = words + ".";
      close_all(errc::link_down,
                fmt::format("{}: {}; look at the kernel's log (dmesg)", device_.text(), words));
      return;
  }
}

/// What was under way when the port went down should have failed, or been tried again; Soft-RoCE at times does neither.
/// The time without the port is over; that to mend a link begins.
void endpoint::on_port_up(base::nanoseconds now) {
  const base::nanoseconds since = std::exchange(port_down_since_, 0);
  if (since == 0) return;
  for (auto& l : links_)
    if (l && l->state == link_state::broken) l->mends.port_is_back(now);
  for (auto& l : links_)
    if (l && l->up() && l->packets.outstanding() + l->accesses.outstanding() != 0)
      break_off(
          *l, errc::link_down,
          fmt::format("{} to rank {}: the port was down. {}", device_.text(), l->who.index, port_words()),
          now);
}

/// Connections that are made keep the address they have; but with it gone, answers may not find the way back.
void endpoint::on_address_change(const device_event& event) {
  if (!device_.ethernet()) {
    ibv_port_attr port{};
    if (ibv_query_port(device_.context.get(), device_.port_number, &port) == 0 &&
        port.lid != device_.port.lid)
      remark_ = fmt::format("{}: LID {} became {}: connections go on to the old one.", event.row->name,
                            device_.port.lid, port.lid);
    return;
  }
  ibv_gid gid{};
  const bool there = ibv_query_gid(device_.context.get(), device_.port_number, device_.gid_index, &gid) == 0;
  if (there && std::memcmp(gid.raw, device_.gid.raw, sizeof gid.raw) == 0) return;
  static constexpr ibv_gid none{};
  const bool empty = !there || std::memcmp(gid.raw, none.raw, sizeof gid.raw) == 0;
  remark_ = fmt::format("{}: GID {} was {} and is {}: has the address of the network card changed?",
                        event.row->name, device_.gid_index, gid_text(device_.gid),
                        empty ? std::string("empty") : gid_text(gid));
}

/// The device tells, once, when few posted receives are left. Leases see to it that some always are; so it says that this
/// rank is behind with its messages, and that it had better wake.
void endpoint::watch_receives() noexcept {
  receives_low_ = false;
  ibv_srq_attr limit{};
  limit.srq_limit = few_receives;
  ibv_modify_srq(receives_.get(), &limit, IBV_SRQ_LIMIT);  // a device that cannot has one warning less
}

base::nanoseconds endpoint::probe_interval() const noexcept {
  return std::max(how_.link_timeout / 4, 500 * base::millisecond);
}

/// Who only waits posts nothing that could fail. So whoever was silent for a while gets an empty RDMA Write: its device
/// answers, without a receive or its processor, and if it does not, the write fails as any request does. And what was posted
/// has to end in time, as far as the completions tell that were handled: a rank that computed for long is behind with them.
void endpoint::look_for_silence(base::nanoseconds now) {
  const bool probes = now - probed_ >= probe_interval();
  if (probes) probed_ = now;
  silence_due_ = now + probe_interval() / 2;
  if (port_down_since_ != 0) return;  // it would fail here, and there is time yet
  for (auto& l : links_) {
    if (!l || !l->up() || l->said_bye) continue;
    const queue_pair& q = l->packets;
    const bool silent = probes && l->arrived == l->probed_at;
    if (probes) l->probed_at = l->arrived;
    if (l->awaited_since != 0 && static_cast<std::int32_t>(q.retired - l->awaited) > 0) {
      l->awaited_since = 0;
      l->lived.was_of_use();  // a link that carries nothing but probes
    }
    if (l->awaited_since == 0) {
      l->awaited = q.posted - q.posted % signal_every - 1;  // the last one that tells, if it is not over yet
      const bool waits = static_cast<std::int32_t>(q.retired - l->awaited) <= 0;
      if (!waits && !(probes && (silent || q.outstanding() != 0) && probe(*l))) continue;
      l->awaited_since = now;
    } else if (told_until_ - l->awaited_since >= longest_silence) {
      break_off(*l, errc::peer_failed,
                fmt::format(
                    "{} to rank {}, packets: neither an answer nor an error in {} s: is that process alive, "
                    "and are both links up? {}",
                    device_.text(), l->who.index, (now - l->awaited_since) / base::second, port_words()),
                now - longest_silence);
      continue;
    }
    silence_due_ = std::min(silence_due_, std::max(l->awaited_since + longest_silence, now + event_interval));
  }
}

/// False: there is no room for it.
bool endpoint::probe(link& to) noexcept {
  if (tokens_ <= 0 || to.packets.outstanding() + 1 >= to.slots.size()) return false;
  const std::uint32_t number = to.packets.posted;
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = name(request::packet, to, number);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(to.packets.get(), &wr, &bad) != 0) return false;
  to.slots[number % to.slots.size()] = link::no_slot;
  to.awaited = number;
  ++to.packets.posted;
  --tokens_;
  return true;
}

void endpoint::close_all(errc why, const std::string& words) {
  for (auto& l : links_)
    if (l) close(*l, why, words);
}

}  // namespace verbena::transport::verbs
