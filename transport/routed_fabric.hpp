// All ways to all peers: the leaf fabrics a context has, and one byte per peer that says which of them leads there. The
// engine is written against this class; a switch on the byte is one predictable branch on the hot path, and there is no
// virtual call and no template above. Contract and vocabulary: fabric.hpp. It must not know ranks or messages.
#pragma once

#include "transport/fabric.hpp"
#include "transport/self/self_fabric.hpp"
#include "transport/shm/shm_fabric.hpp"
#include "transport/sim/sim_fabric.hpp"
#include "transport/tcp/tcp_fabric.hpp"
#include "transport/verbs/verbs_fabric.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace verbena::transport {

enum class route : std::uint8_t { none = 0, self = 1, shm = 2, sim = 3, verbs = 4, tcp = 5 };

class routed_fabric {
 public:
  /// Keeps the leaf that made it alive only by convention: regions end before their fabric.
  class region {
   public:
    region() = default;
    template <class Leaf>
    region(Leaf&& leaf, route way) : leaf_(std::forward<Leaf>(leaf)), way_(way) {}
    region(region&&) = default;
    region& operator=(region&&) = default;

    explicit operator bool() const noexcept {
      return std::visit([](const auto& leaf) { return holds(leaf); }, leaf_);
    }
    /// The key with the route stamped in, so that its user at the peer needs no second guess.
    remote_key key() const {
      remote_key key = std::visit([](const auto& leaf) { return key_of(leaf); }, leaf_);
      key.fabric = static_cast<std::uint8_t>(way_);
      return key;
    }

   private:
    static bool holds(const std::monostate&) noexcept { return false; }
    template <class Leaf>
    static bool holds(const Leaf& leaf) noexcept {
      return static_cast<bool>(leaf);
    }
    static remote_key key_of(const std::monostate&) { return {}; }
    template <class Leaf>
    static remote_key key_of(const Leaf& leaf) {
      return leaf.key();
    }
    std::variant<std::monostate, table_region, shm::shm_fabric::region, verbs::region> leaf_;
    route way_ = route::none;
  };

  /// `allowed`: comma list of names, empty for all. The loopback is always there.
  routed_fabric(peer self, std::uint32_t job_size, std::string_view allowed);

  // Leaves are added before the first attach.
  void add(std::unique_ptr<shm::shm_fabric> leaf) { shm_ = std::move(leaf); }
  void add(std::unique_ptr<sim::sim_fabric> leaf) {
    sim_ = std::move(leaf);
    others_ = true;
  }
  void add(std::unique_ptr<verbs::verbs_fabric> leaf) {
    verbs_ = std::move(leaf);
    others_ = true;
  }
  void add(std::unique_ptr<tcp::tcp_fabric> leaf) {
    tcp_ = std::move(leaf);
    others_ = true;
  }
  /// True if some rank can be reached by verbs or TCP only, or by nothing; `all_local`: all ranks are on this node.
  bool wants_verbs(bool all_local) const { return allows("verbs") && !shm_reaches(all_local); }
  bool wants_tcp(bool all_local) const { return allows("tcp") && !shm_reaches(all_local); }
  /// What others need to reach this rank by verbs; empty without that leaf.
  std::span<const std::byte> verbs_address() const { return verbs_ ? verbs_->address() : std::span<const std::byte>{}; }
  /// The same for TCP, whose connections are proven with the job's secret: before the first attach.
  std::span<const std::byte> tcp_address() const { return tcp_ ? tcp_->address() : std::span<const std::byte>{}; }
  void trust(const tcp::secret& key, const std::string& job) { tcp_->trust(key, job); }

  /// What a peer published for the leaves that reach other hosts.
  struct contacts {
    std::span<const std::byte> verbs, tcp;
  };

  /// Finds a way to the peer: the first leaf that reaches it, nearest first. False: none does.
  bool attach(peer to, const contacts& published);
  bool attach(peer to) { return attach(to, contacts{}); }
  route way_to(peer to) const noexcept { return routes_[to.index]; }
  /// False: what `limits` and `explain` say of the peer may change by its joining, or by connecting.
  bool settled(peer to) const {
    if (routes_[to.index] == route::tcp) return tcp_->settled(to);
    return routes_[to.index] != route::shm || shm_->has_joined(to);
  }
  /// Connects already, where that waits for the first packet otherwise; polls do it.
  void connect(peer to) {
    if (routes_[to.index] == route::tcp) tcp_->connect(to);
  }
  /// One line per leaf: taken or not, and why.
  std::string explain(peer to) const;
  /// Why the connection to a peer broke, where the fabric knows; or nothing.
  std::string last_words(peer to) const {
    if (routes_[to.index] == route::tcp) return tcp_->last_words(to);
    return verbs_ ? verbs_->last_words(to) : std::string{};
  }

  peer_limits limits(peer to) const {
    return on_route(*this, to, peer_limits{}, [&](auto& leaf) { return leaf.limits(to); });
  }

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write) {
    if (routes_[to.index] == route::shm) [[likely]]
      return shm_->send(to, head, size, write);
    return on_route(*this, to, post_result::down, [&](auto& leaf) { return leaf.send(to, head, size, write); });
  }
  /// The short way to a peer of this node, for who sends to it again and again; null: there is none, use send and poll.
  using channel = shm::pair_state*;
  channel open_channel(peer to) const { return routes_[to.index] == route::shm ? shm_->channel(to) : nullptr; }
  template <class Writer>
  post_result send_on(channel to, envelope head, std::size_t size, Writer&& write) {
    return shm_->send_on(*to, head, size, write);
  }
  /// Shows the next packet of the channel's peer to `take(head, payload)`, which says whether it wants it. What it does
  /// not want stays where it is, and comes by poll.
  template <class Take>
  next_packet take_next(channel from, base::nanoseconds now, Take&& take) {
    return shm_->take_next(*from, now, take);
  }

  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return on_route(*this, to, post_result::down, [&](auto& leaf) { return leaf.put(to, local, key, offset, op); });
  }
  /// A put that packets posted behind it may overtake, where that saves something: for a rendezvous, which says itself that
  /// its put is through.
  post_result put_apart(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    if (routes_[to.index] == route::verbs) return verbs_->put_apart(to, local, key, offset, op);
    return put(to, local, key, offset, op);
  }
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return on_route(*this, to, post_result::down, [&](auto& leaf) { return leaf.get(to, local, key, offset, op); });
  }
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset, std::uint64_t word,
                            operation& op) {
    return on_route(*this, to, post_result::down,
                    [&](auto& leaf) { return leaf.put_with_flag(to, local, key, offset, word, op); });
  }
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset, std::uint64_t word,
                        operation& op) {
    return on_route(*this, to, post_result::down,
                    [&](auto& leaf) { return leaf.fetch_add(to, local, key, offset, word, op); });
  }
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset, std::uint64_t expected,
                           std::uint64_t desired, operation& op) {
    return on_route(*this, to, post_result::down,
                    [&](auto& leaf) { return leaf.compare_swap(to, local, key, offset, expected, desired, op); });
  }
  /// Registers memory for the other ranks; empty: the fabric that leads to them refuses, or there are none.
  region register_memory(buffer local) {
    if (verbs_ && !shm_used_) return {verbs_->register_memory(local), route::verbs};
    if (tcp_ && !shm_used_) return {};
    if (shm_) return {shm_->register_memory(local), route::shm};
    if (sim_) return {sim_->register_memory(local), route::sim};
    return {};
  }
  /// Registers memory for one transfer with the peer.
  region register_memory(peer to, buffer local) {
    if (routes_[to.index] == route::verbs) return {verbs_->register_for_transfer(local), route::verbs};
    return on_route(*this, to, region{},
                    [&](auto& leaf) { return region{leaf.register_memory(local), routes_[to.index]}; });
  }

  /// This memory stays where it is until `forget`, which comes before it goes: what registering it gives may be kept.
  void vouch(void* block, std::size_t bytes) noexcept {
    if (verbs_) verbs_->vouch({static_cast<std::byte*>(block), bytes});
  }
  void forget(const void* block) noexcept {
    if (verbs_) verbs_->forget(static_cast<const std::byte*>(block));
  }
  region_counts registration_counts() const noexcept {
    return verbs_ ? verbs_->registration_counts() : region_counts{};
  }

  // bulk_method::together: leaves that do not share are never asked (limits), and would answer down.
  post_result offer(peer to, buffer local, remote_key& ticket, operation& op) {
    return on_route(*this, to, post_result::down, [&](auto& leaf) {
      if constexpr (sharing_fabric<std::remove_reference_t<decltype(leaf)>>) return leaf.offer(to, local, ticket, op);
      return post_result::down;
    });
  }
  post_result accept(peer from, buffer local, remote_key& ticket, operation& op) {
    return on_route(*this, from, post_result::down, [&](auto& leaf) {
      if constexpr (sharing_fabric<std::remove_reference_t<decltype(leaf)>>)
        return leaf.accept(from, local, ticket, op);
      return post_result::down;
    });
  }
  bool withdraw(peer to, remote_key& ticket) {
    return on_route(*this, to, false, [&](auto& leaf) {
      if constexpr (sharing_fabric<std::remove_reference_t<decltype(leaf)>>) return leaf.withdraw(to, ticket);
      return false;
    });
  }

  template <class Sink>
  std::size_t poll(base::nanoseconds now, Sink& sink) {
    std::size_t events = shm_ ? shm_->poll(now, sink) : 0;
    events += self_.poll(now, sink);
    if (others_) [[unlikely]] {
      if (sim_) events += sim_->poll(now, sink);
      if (verbs_) events += verbs_->poll(now, sink);
      if (tcp_) events += tcp_->poll(now, sink);
    }
    return events;
  }
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds now, Sink& sink) {
    if (routes_[from.index] == route::shm) [[likely]]
      return shm_->poll_from(from, now, sink);
    return on_route(*this, from, std::size_t{0}, [&](auto& leaf) { return leaf.poll_from(from, now, sink); });
  }

  bool arm() {
    bool quiet = self_.arm();  // each is armed, whatever the others say
    if (shm_) quiet = shm_->arm() && quiet;
    if (sim_) quiet = sim_->arm() && quiet;
    if (verbs_) quiet = verbs_->arm() && quiet;
    if (tcp_) quiet = tcp_->arm() && quiet;
    return quiet;
  }
  void disarm() {
    self_.disarm();
    if (shm_) shm_->disarm();
    if (sim_) sim_->disarm();
    if (verbs_) verbs_->disarm();
    if (tcp_) tcp_->disarm();
  }

  /// Memory that all ranks of the node map, for the world communicator's collectives; empty without shared memory.
  std::span<std::byte> world_block() const { return shares() ? shm_->world_block() : std::span<std::byte>{}; }

  // Memory of this rank that all ranks of the node map, by an offset that means the same to all of them.
  /// Zeroed, 64-byte aligned, page aligned from one page on; 0: there is none (left).
  std::uint64_t allocate_shared(std::uint64_t bytes) { return shares() ? shm_->allocate(bytes) : 0; }
  void free_shared(std::uint64_t offset) noexcept { shm_->free(offset); }
  /// Bytes not given out yet.
  std::uint64_t shared_room() const noexcept { return shm_ ? shm_->room() : 0; }
  /// What lies there in this process's memory; the range must be one that a rank of the node has allocated.
  std::span<std::byte> shared_memory(std::uint64_t offset, std::uint64_t bytes) const {
    return shm_->memory(offset, bytes);
  }
  /// The way back; 0: that is no memory of the segment.
  std::uint64_t shared_offset(const void* at) const noexcept { return shm_ ? shm_->offset_of(at) : 0; }

 private:
  template <class Self, class Result, class Visit>
  static Result on_route(Self& self, peer to, Result otherwise, Visit&& visit) {
    switch (self.routes_[to.index]) {
      case route::shm: return visit(*self.shm_);
      case route::self: return visit(self.self_);
      case route::sim: return visit(*self.sim_);
      case route::verbs: return visit(*self.verbs_);
      case route::tcp: return visit(*self.tcp_);
      case route::none: break;
    }
    return otherwise;
  }
  bool allows(std::string_view name) const;
  /// Memory of the node is used only where its fabric may be.
  bool shares() const { return shm_ && allows("shm"); }
  bool shm_reaches(bool all_local) const { return all_local && shares(); }

  peer me_;
  std::string allowed_;
  std::vector<route> routes_;
  self::self_fabric self_;
  std::unique_ptr<shm::shm_fabric> shm_;
  std::unique_ptr<sim::sim_fabric> sim_;
  std::unique_ptr<verbs::verbs_fabric> verbs_;
  std::unique_ptr<tcp::tcp_fabric> tcp_;
  bool others_ = false;    ///< there is more to poll than shared memory and the loopback
  bool shm_used_ = false;  ///< some peer is reached that way
};

}  // namespace verbena::transport
