// Making and ending: the listening socket, what is published, what is said of a peer.
#include "transport/tcp/endpoint.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::transport::tcp {
namespace {

std::uint16_t port_of(int socket) noexcept {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &bytes) != 0) return 0;
  return ntohs(at.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(at).sin_port
                                       : reinterpret_cast<const sockaddr_in6&>(at).sin6_port);
}

}  // namespace

endpoint::endpoint(peer self, std::uint32_t job_size, const base::job_page* page, options how)
    : self_(self), how_(std::move(how)), addresses_(find_addresses(how_.only_this_host, how_.interfaces)), host_(this_host()) {
  if (page != nullptr) page_ = *page;
  mine_.rank = self.index;
  fill_randomly(mine_.self);
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_)
    throw error(errc::not_supported,
                fmt::format("the kernel gives no epoll descriptor: {}", std::strerror(errno)));
  if (addresses_.all.empty())
    throw error(errc::not_supported, how_.only_this_host ? "this host's loopback is not up"
                                                         : "no network interface of this host is up");
  if (!how_.only_this_host && !how_.interfaces.empty() &&
      std::all_of(addresses_.all.begin(), addresses_.all.end(),
                  [](const tcp::address& a) { return a.within == reach::loopback; }))
    throw error(errc::not_supported, "this host has none of the interfaces and networks that --interface (VERBENA_INTERFACE) allows");
  listen();
  links_.resize(job_size);
  for (std::uint32_t i = 0; i < job_size; ++i)
    if (peer{i} != self_) links_[i] = std::make_unique<link>(peer{i});
  arrivals_.reserve(2 * arrivals_per_gather);
  for (std::vector<link*>* list : {&touched_, &behind_, &owing_, &stuffed_, &ending_, &seeking_})
    list->reserve(job_size);
}

/// Listens at these addresses, all with one port; those that cannot be had are dropped. False, with errno: at none, or no port is free.
bool endpoint::listen_at(std::vector<tcp::address>& all) {
  // A port that one address has free another may not: the sockets that were in vain keep theirs, so that the next is another.
  constexpr int most_attempts = 64;
  std::vector<base::unique_fd> in_vain;
  for (int attempt = 0; attempt < most_attempts && !all.empty(); ++attempt) {
    listeners_.clear();
    base::port_range ports = how_.ports;
    bool taken = false;
    std::vector<tcp::address> had;
    for (const tcp::address& each : all) {
      const bool scoped = each.family == 6 && each.within == reach::link_local;
      const std::vector<std::uint32_t> unscoped{0};
      for (const std::uint32_t scope : scoped ? addresses_.link_local_interfaces : unscoped) {
        socklen_t bytes = 0;
        const sockaddr_storage where = socket_address(each, 0, scope, bytes);
        base::unique_fd socket = base::listen_within(where, bytes, ports, SOMAXCONN);
        if (!socket) {
          taken = taken || errno == EADDRINUSE;
          continue;  // not of this interface, or going away
        }
        const std::uint16_t port = port_of(socket.get());
        ports = {port, port};
        listeners_.push_back(std::move(socket));
        if (had.empty() || had.back() != each) had.push_back(each);
      }
    }
    if (!taken) {
      all = std::move(had);
      return !all.empty();
    }
    if (listeners_.empty()) break;  // the first address has no port free
    in_vain.push_back(std::move(listeners_.front()));
  }
  listeners_.clear();
  errno = EADDRINUSE;
  return false;
}

/// On the loopback alone where nobody else calls; on the addresses of the interfaces that are named, and the loopback; otherwise on
/// all addresses, by one socket for both families if it can be had.
void endpoint::listen() {
  bool heard = false;
  if (how_.only_this_host) {
    for (const tcp::address& at : addresses_.all) {
      std::vector<tcp::address> one{at};
      heard = listen_at(one);
      if (!heard) continue;
      addresses_.all = one;
      break;
    }
  } else if (!how_.interfaces.empty()) {
    heard = listen_at(addresses_.all);
  } else {
    for (const std::uint8_t family : {std::uint8_t{6}, std::uint8_t{4}}) {
      tcp::address any;
      any.family = family;
      socklen_t bytes = 0;
      const sockaddr_storage where = socket_address(any, 0, 0, bytes);
      base::unique_fd socket = base::listen_within(where, bytes, how_.ports, SOMAXCONN, family == 6);
      heard = static_cast<bool>(socket);
      if (!heard) continue;
      listeners_.push_back(std::move(socket));
      if (family == 4) std::erase_if(addresses_.all, [](const tcp::address& a) { return a.family != 4; });
      break;
    }
  }
  if (!heard)
    throw error(errc::not_supported,
                fmt::format("this rank can listen nowhere: {}{}", std::strerror(errno),
                            how_.ports == base::port_range{} ? "" : " (--port-range: are there enough ports for all ranks?)"));
  for (const base::unique_fd& each : listeners_) watch(each.get(), EPOLLIN, name(source::listener, 0), false);
  contact c;
  c.self = mine_.self;
  c.host = host_;
  c.addresses = addresses_.all;
  c.port = port_of(listeners_.front().get());
  address_ = encode(c);
}

void endpoint::watch(int fd, std::uint32_t events, std::uint64_t who, bool known) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = who;
  ::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

void endpoint::trust(const secret& key, std::string job) {
  mine_.key = key;
  mine_.job = std::move(job);
  trusted_ = true;
}

bool endpoint::attach(peer to, std::span<const std::byte> address) {
  link* const l = find(to);
  if (l == nullptr) return false;
  if (l->state != link_state::absent) return l->reachable();
  auto there = decode_contact(address);
  if (!trusted_) {
    l->last_words = "the job's secret is not known";
  } else if (!there) {
    l->last_words = fmt::format(
        "rank {} published nothing that this release can read: do both run the same one?", to.index);
  } else if (there->port == 0) {
    l->last_words = fmt::format("rank {} listens nowhere: {}", to.index, there->why);
  } else {
    l->there = std::move(*there);
    l->same_host = l->there.host == host_;
    l->ways = choose_ways(addresses_, l->there.addresses, l->same_host);
    if (l->ways.empty())
      l->last_words = fmt::format(
          "rank {} has {} addresses, and none that this host could reach: of another family, or its own, too",
          to.index, l->there.addresses.size());
  }
  if (l->ways.empty()) return false;
  l->talk = session::session(session_of(session_identity(mine_, to.index, l->there.self)));
  l->state = link_state::idle;
  return true;
}

void endpoint::connect(peer to) {
  link* const l = find(to);
  if (l != nullptr && l->state == link_state::idle) seek(*l, 0);
}

bool endpoint::settled(peer to) const {
  const link* const l = find(to);
  return l == nullptr || (l->state != link_state::idle && l->state != link_state::seeking);
}

std::string endpoint::explain(peer to) const {
  const link* const l = find(to);
  if (l == nullptr) return "tcp: the peer is this process";
  std::string ways;
  for (const way& w : l->ways) ways += fmt::format("{}{}", ways.empty() ? "" : ", ", text_of(w.to));
  const char* const why = l->same_host ? "it is on this host" : "it is on another host";
  switch (l->state) {
    case link_state::absent:
      return "tcp: " + (l->last_words.empty() ? std::string("not asked for") : l->last_words);
    case link_state::idle:
      return fmt::format("tcp: {}; connects when first used, to port {} of {}", why, l->there.port, ways);
    case link_state::seeking:
      return fmt::format("tcp: {}; no connection yet, to port {} of {}{}{}", why, l->there.port, ways,
                         l->failure != 0 ? ": " : "", l->failure != 0 ? std::strerror(l->failure) : "");
    case link_state::up:
      return fmt::format(
          "tcp: {}; {} -> {}, the first of {} pair{} of addresses that was proven{}; packets of {} KiB", why,
          local_text(l->socket.get()), remote_text(l->socket.get()), l->ways.size(),
          l->ways.size() == 1 ? "" : "s",
          l->breaks == 0 ? std::string{} : fmt::format(", after {} breaks", l->breaks), payload_bytes / 1024);
    case link_state::ending:
    case link_state::down:
      break;
  }
  return fmt::format("tcp: rank {} has {}{}{}", to.index,
                     l->end == errc::peer_left ? "left the job" : "failed", l->last_words.empty() ? "" : ": ",
                     l->last_words);
}

std::string endpoint::last_words(peer to) const {
  const link* const l = find(to);
  return l == nullptr ? std::string{} : l->last_words;
}

peer_limits endpoint::limits() const noexcept {
  return {.packet_bytes = payload_bytes,
          .inline_bytes = 1024,
          .eager_bytes = payload_bytes,
          .bulk = bulk_method::stream,
          .native_put = false,
          .native_atomics = false,
          .latency_us = 10,
          .bandwidth_gbs = 2};
}

endpoint::~endpoint() {
  leave();
  watcher_.reset();
}

}  // namespace verbena::transport::tcp
