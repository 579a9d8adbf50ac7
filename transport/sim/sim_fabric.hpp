// One endpoint of a simulated world, as a fabric. It holds nothing but the way to its world: a fresh endpoint
// costs some hundred bytes, and what it has to do with a peer is made by the first post.
#pragma once

#include "transport/sim/sim_world.hpp"

#include <string>

namespace verbena::transport::sim {

class sim_fabric {
 public:
  using region = table_region;

  sim_fabric(sim_world& world, peer self) : world_(world), self_(self.index) { world_.attach(self_); }
  ~sim_fabric() { world_.detach(self_); }
  sim_fabric(const sim_fabric&) = delete;
  sim_fabric& operator=(const sim_fabric&) = delete;

  std::span<const std::byte> address() const noexcept { return {}; }
  bool attach(peer to, std::span<const std::byte>) noexcept { return to.index < world_.size(); }
  std::string explain(peer to) const {
    return to.index < world_.size() ? "sim: the peer lives in the same simulated world"
                                    : "sim: the world has no such peer";
  }
  peer_limits limits(peer) const noexcept { return world_.options().limits; }

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write) {
    base::check(size <= world_.options().limits.packet_bytes, "sim: a packet larger than packet_bytes");
    if (const post_result answer = world_.admit(self_, to.index); answer != post_result::done) return answer;
    const std::uint32_t index = world_.begin_packet(self_, to.index, size);
    parcel& p = world_.pool_[index];
    p.head = head;
    write(p.bytes.data());
    world_.end_packet(index);
    return post_result::done;
  }

  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return world_.post_one_sided({parcel_kind::put, self_, to.index, local, key, offset, {}}, op);
  }
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return world_.post_one_sided({parcel_kind::get, self_, to.index, local, key, offset, {}}, op);
  }
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op) {
    return world_.post_one_sided({parcel_kind::put_with_flag, self_, to.index, local, key, offset, {word, 0}},
                                 op);
  }
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                        std::uint64_t word, operation& op) {
    if (!world_.options().limits.native_atomics) return post_result::down;
    return world_.post_one_sided({parcel_kind::fetch_add, self_, to.index, local, key, offset, {word, 0}},
                                 op);
  }
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                           std::uint64_t expected, std::uint64_t desired, operation& op) {
    if (!world_.options().limits.native_atomics) return post_result::down;
    return world_.post_one_sided(
        {parcel_kind::compare_swap, self_, to.index, local, key, offset, {expected, desired}}, op);
  }

  post_result offer(peer to, buffer local, remote_key& ticket, operation& op) {
    return world_.offer(self_, to.index, local, ticket, op);
  }
  post_result accept(peer to, buffer local, const remote_key& ticket, operation& op) {
    return world_.accept(self_, to.index, local, ticket, op);
  }
  bool withdraw(peer to, const remote_key& ticket) { return world_.withdraw(self_, to.index, ticket); }

  region register_memory(buffer local) { return world_.register_memory(self_, local); }

  template <class Sink>
  std::size_t poll(base::nanoseconds, Sink& sink) {
    return report(any_peer, sink);
  }
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds, Sink& sink) {
    return report(from.index, sink);
  }

  bool arm() noexcept { return world_.endpoints_[self_].inbox_first == no_parcel; }
  void disarm() noexcept {}

 private:
  template <class Sink>
  std::size_t report(std::uint32_t about, Sink& sink) {
    if (!world_.endpoints_[self_].alive) return 0;
    std::size_t events = 0;
    for (const std::uint32_t most = world_.poll_budget(); events < most;) {
      const std::uint32_t index = world_.take_from_inbox(self_, about);
      if (index == no_parcel) break;
      parcel& p = world_.pool_[index];
      const peer from{p.from};
      operation* op = p.op;
      const errc error = p.error;
      switch (p.what) {
        case parcel_kind::packet:
          sink.on_packet(from, p.head, std::span<const std::byte>(p.bytes));
          break;
        case parcel_kind::flag:
          sink.on_flag(from, p.words[0]);
          break;
        case parcel_kind::down:
          world_.fail_pending(self_, p.from, error);
          sink.on_peer_down(from, error);
          break;
        default:
          break;
      }
      if (p.what != parcel_kind::none) ++events;
      world_.release(index);
      if (op != nullptr) op->complete(error);
    }
    world_.end_poll(self_);
    return events;
  }

  sim_world& world_;
  std::uint32_t self_;
};

static_assert(fabric<sim_fabric> && sharing_fabric<sim_fabric>);

}  // namespace verbena::transport::sim
