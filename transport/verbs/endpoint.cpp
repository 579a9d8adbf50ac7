// Making and ending: devices, queues, slots, queue pairs; what is published; connecting.
#include "transport/verbs/endpoint.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace verbena::transport::verbs {
namespace {

constexpr std::uint32_t flags_per_peer = 16;
constexpr std::uint32_t words_per_peer =
    8;  // control words a peer may have on the way: 3 credits of each kind, open, opened, bye
constexpr std::uint32_t wanted_inline_bytes = 256;

template <class Number>
Number random_number() {
  Number value = 0;
  if (::getrandom(&value, sizeof value, 0) != sizeof value) value = static_cast<Number>(base::steady_now());
  return value;
}

/// What may stay registered: no more than half of what the process may lock, so that the rest is left for what is under way,
/// and of the machine's memory a quarter, shared with the ranks beside it.
region_cache::bounds most_kept(std::uint64_t wanted, const ibv_device_attr& device, std::size_t ranks_here) {
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
    wanted = std::min<std::uint64_t>(wanted, locked.rlim_cur / 2);
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    wanted = std::min(wanted, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) / 4 /
                                  std::max<std::size_t>(ranks_here, 1));
  return {.bytes = wanted, .entries = static_cast<std::uint32_t>(std::clamp(device.max_mr / 4, 0, 1024))};
}

[[noreturn]] void refuse_device(const device_choice& device, const char* what, std::uint32_t wanted,
                                int most) {
  throw error(errc::not_supported,
              fmt::format("{} has room for {} {}, this job needs {}", device.text(), most, what, wanted));
}

}  // namespace

endpoint::endpoint(peer self, std::uint32_t job_size, const base::job_page* page, options how)
    : self_(self),
      how_(std::move(how)),
      device_(choose_device(how_.device)),
      first_number_(random_number<std::uint32_t>() & 0xffffff) {
  if (page != nullptr) page_ = *page;
  if (!device_.context) throw error(errc::not_supported, device_.why);
  domain_.reset(ibv_alloc_pd(device_.context.get()));
  channel_.reset(ibv_create_comp_channel(device_.context.get()));
  if (!domain_ || !channel_)
    throw error(errc::not_supported, fmt::format("{} gives no protection domain or completion channel: {}",
                                                 device_.text(), std::strerror(errno)));
  registered_ = std::make_unique<registrations>(
      domain_.get(),
      most_kept(how_.kept_bytes, device_.attributes, page_ ? page_->local_ranks().size() : std::size_t{1}));
  events_ = std::make_unique<device_events>(*device_.context, device_.port_number);
  mail_ = std::make_unique<mailbox>(device_, domain_.get(), channel_.get(), job_size - 1);
  if (!*mail_) mail_.reset();
  identity_ = random_number<std::uint64_t>() | 1;
  make_queues(job_size - 1);
  watch_receives();
  make_links(job_size);
}

void endpoint::check_memory(bool made, const char* what, std::size_t bytes) const {
  if (!made)
    throw error(
        errc::out_of_memory,
        fmt::format(
            "cannot register {} KiB for {} with {}: {}: is there a limit on locked memory (ulimit -l)?",
            bytes / 1024, what, device_.text(), std::strerror(errno)));
}

void endpoint::make_queues(std::uint32_t peers) {
  lease_ = std::clamp(2048U / std::max(peers, 1U), 8U, 64U);
  const std::uint32_t each = lease_ + flags_per_peer + words_per_peer;
  const std::uint32_t receives = std::max(peers, 1U) * each;
  if (receives > static_cast<std::uint32_t>(device_.attributes.max_srq_wr))
    refuse_device(device_, "posted receives", receives, device_.attributes.max_srq_wr);
  const std::uint32_t sends = std::max(peers, 1U) * (each + access_ring::most);
  const std::uint32_t markers = 2 * peers;
  const auto most = static_cast<std::uint32_t>(device_.attributes.max_cqe);
  const std::uint32_t least = receives + markers + 64;
  if (least > most) refuse_device(device_, "completions", least, device_.attributes.max_cqe);
  const std::uint32_t entries = std::min(receives + markers + sends, most);
  tokens_ = static_cast<std::int32_t>(entries - receives - markers);
  entries_ = entries;

  completions_.reset(
      ibv_create_cq(device_.context.get(), static_cast<int>(entries), nullptr, channel_.get(), 0));
  if (!completions_)
    throw error(errc::not_supported, fmt::format("{} makes no completion queue of {}: {}", device_.text(),
                                                 entries, std::strerror(errno)));
  ibv_srq_init_attr shared{};
  shared.attr.max_wr = receives;
  shared.attr.max_sge = 1;
  receives_.reset(ibv_create_srq(domain_.get(), &shared));
  if (!receives_)
    throw error(errc::not_supported, fmt::format("{} makes no shared receive queue of {}: {}", device_.text(),
                                                 receives, std::strerror(errno)));
  incoming_ = slot_pool(domain_.get(), receives, slot_bytes);
  check_memory(static_cast<bool>(incoming_), "packets that come in", receives * slot_bytes);
  // A packet keeps its slot until its peer has given its room back.
  const std::uint32_t out = std::max(peers, 1U) * lease_;
  outgoing_ = slot_pool(domain_.get(), out, slot_bytes);
  check_memory(static_cast<bool>(outgoing_), "packets that go out", out * slot_bytes);
  const std::uint32_t small = out + words_per_peer;
  small_ = slot_pool(domain_.get(), small, small_slot_bytes);
  check_memory(static_cast<bool>(small_), "small packets that go out", small * small_slot_bytes);
  words_ = slot_pool(domain_.get(), access_ring::most, sizeof(std::uint64_t));
  check_memory(static_cast<bool>(words_), "atomics", access_ring::most * sizeof(std::uint64_t));

  arrivals_.reserve(128);
  held_.reserve(128);
  to_post_.reserve(receives);
  kept_.reserve(receives + 64);
  for (std::uint32_t i = 0; i < receives; ++i) to_post_.push_back(i);
  post_receives();
}

void endpoint::make_links(std::uint32_t job_size) {
  links_.resize(job_size);
  roles_.reserve(std::size_t{job_size} * 3);
  busy_.reserve(job_size);
  closing_.reserve(job_size);
  mending_.reserve(job_size);
  const std::uint32_t each = lease_ + flags_per_peer + words_per_peer;
  std::vector<std::uint32_t> numbers(job_size, 0);
  inline_bytes_ = wanted_inline_bytes;
  for (std::uint32_t i = 0; i < job_size; ++i) {
    if (peer{i} == self_) continue;
    links_[i] = std::make_unique<link>();
    link& l = *links_[i];
    l.who = peer{i};
    l.packets = queue_pair(device_, domain_.get(), completions_.get(), receives_.get(),
                           {.sends = each + signal_every,
                            .inline_bytes = wanted_inline_bytes,
                            .access = IBV_ACCESS_REMOTE_WRITE});
    if (!l.packets)
      throw error(errc::not_supported, fmt::format("{} makes no queue pair for rank {} ({} are made): {}",
                                                   device_.text(), i, i, std::strerror(errno)));
    inline_bytes_ = std::min(inline_bytes_, l.packets.inline_bytes());
    l.slots.assign(each + signal_every, link::no_slot);
    roles_[l.packets.number()] = {&l, owner::packets};
    numbers[i] = l.packets.number();
  }
  contact_head head;
  head.link_layer = device_.port.link_layer;
  head.mtu = static_cast<std::uint8_t>(device_.port.active_mtu);
  head.lid = device_.port.lid;
  std::memcpy(head.gid, device_.gid.raw, sizeof head.gid);
  head.start = first_number_;
  head.lease = lease_;
  head.flags = flags_per_peer;
  head.packet_bytes = payload_bytes;
  head.reads = static_cast<std::uint16_t>(std::clamp(device_.attributes.max_qp_rd_atom, 1, 16));
  head.ranks = job_size;
  if (mail_) {
    head.mailbox = mail_->number();
    head.mailbox_key = mail_->key();
    head.identity = identity_;
  }
  address_ = encode(head, numbers);
}

bool endpoint::attach(peer to, std::span<const std::byte> address) {
  link* const l = find(to);
  if (l == nullptr) return false;
  if (l->state != link_state::absent) return l->reachable();
  auto there = decode(address, self_.index, static_cast<std::uint32_t>(links_.size()));
  if (!there) {
    l->last_words = fmt::format(
        "rank {} published nothing that this release can read: do both run the same one?", to.index);
    return false;
  }
  if (there->head.ranks == 0) {
    l->last_words = fmt::format("rank {} has no device: {}", to.index, there->why);
    return false;
  }
  if (there->head.link_layer != device_.port.link_layer) {
    l->last_words = fmt::format("rank {} is on {}, this one on {}", to.index,
                                device_.ethernet() ? "InfiniBand" : "Ethernet",
                                device_.ethernet() ? "Ethernet" : "InfiniBand");
    return false;
  }
  l->there = *there;
  if (!l->packets.receive_from(device_, there->head, there->number, there->head.start) ||
      !l->packets.begin_sending(device_, there->head, first_number_)) {
    l->last_words =
        fmt::format("{} cannot connect to rank {}: {}", device_.text(), to.index, std::strerror(errno));
    return false;
  }
  l->window = std::min(there->head.lease, lease_);
  l->kept.resize(std::bit_ceil(l->window));
  if (mail_ && there->head.mailbox != 0) {
    ibv_ah_attr way = way_to(device_, there->head);
    l->way.reset(ibv_create_ah(domain_.get(), &way));  // null: a break is the end
    l->way_from = device_.gid_index;
  }
  l->state = link_state::up;
  return true;
}

std::string endpoint::explain(peer to) const {
  const link* const l = find(to);
  if (l == nullptr) return "verbs: the peer is this process";
  if (l->state == link_state::absent)
    return "verbs: " + (l->last_words.empty() ? std::string("not asked for") : l->last_words);
  if (!l->reachable())
    return fmt::format("verbs: rank {} has {}{}{}", to.index,
                       l->end == errc::peer_left ? "left the job" : "failed",
                       l->last_words.empty() ? "" : ": ", l->last_words);
  if (!l->up())
    return fmt::format("verbs: the connection to rank {} broke and is being made anew: {}", to.index,
                       l->last_words);
  static constexpr std::array<int, 6> bytes_of_mtu = {0, 256, 512, 1024, 2048, 4096};
  const int mtu = std::min<int>(device_.port.active_mtu, l->there.head.mtu);
  return fmt::format(
      "verbs: {}, {}; path MTU {} B, inline to {} B, {} packets ahead; reliable connection made at join, "
      "numbers through "
      "the launcher: the one way of this release{}; atomics {}",
      device_.text(), device_.why, bytes_of_mtu[static_cast<std::size_t>(std::clamp(mtu, 0, 5))],
      inline_bytes_, l->window,
      l->mended == 0 ? std::string{} : fmt::format(", made anew after {} breaks", l->mended),
      limits(to).native_atomics ? "by the device"
                                : "by packets: the device's and the processor's do not mix");
}

std::string endpoint::last_words(peer to) const {
  const link* const l = find(to);
  return l == nullptr ? std::string{} : l->last_words;
}

peer_limits endpoint::limits(peer to) const noexcept {
  const link* const l = find(to);
  const bool accesses = l == nullptr || l->accesses_are != access_state::refused;
  const ibv_atomic_cap atomics = device_.attributes.atomic_cap;
  return {.packet_bytes = payload_bytes,
          .inline_bytes = inline_bytes_ > sizeof(packet_head) ? inline_bytes_ - sizeof(packet_head) : 0,
          .eager_bytes = 2 * payload_bytes,
          .bulk = accesses ? bulk_method::put : bulk_method::stream,
          .native_put = accesses,
          .native_atomics =
              accesses && (atomics == IBV_ATOMIC_GLOB || (how_.any_atomics && atomics == IBV_ATOMIC_HCA)),
          .latency_us = 2,
          .bandwidth_gbs = device_.bandwidth()};
}

endpoint::~endpoint() {
  leave();
  watcher_.reset();
  for (auto& l : links_) {  // nothing comes into memory that goes now; queue pairs before the queues they use
    if (!l) continue;
    for (queue_pair* q : {&l->packets, &l->accesses, &l->serving}) q->destroy();
    while (l->under_way.size() != 0) {
      let_go(l->under_way[0]);
      l->under_way.pop();
    }
  }
}

}  // namespace verbena::transport::verbs
