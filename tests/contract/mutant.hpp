// A simulated fabric whose every call can be bent by a derived class, and the front through which the suite
// sees it: virtual inside, a fabric outside, so that dozens of mutants cost one instantiation of the suite.
#pragma once

#include "transport/sim/sim_fabric.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace verbena::contract::mutants {

using namespace transport;  // NOLINT: mutants speak the fabric's language only

using writer = std::function<void(std::byte*)>;

struct sink_face {
  virtual ~sink_face() = default;
  virtual void on_packet(peer from, envelope head, std::span<const std::byte> bytes) noexcept = 0;
  virtual void on_flag(peer from, std::uint64_t word) noexcept = 0;
  virtual void on_peer_down(peer who, errc why) noexcept = 0;
  virtual void on_limits_changed(peer who) noexcept = 0;
  /// The same sink in a form that lives as long as the fabric.
  virtual sink_face* lasting() { return nullptr; }
};

template <class Sink>
struct sink_back : sink_face {
  explicit sink_back(Sink& sink) : to(&sink) {}
  void on_packet(peer from, envelope head, std::span<const std::byte> bytes) noexcept override {
    to->on_packet(from, head, bytes);
  }
  void on_flag(peer from, std::uint64_t word) noexcept override { to->on_flag(from, word); }
  void on_peer_down(peer who, errc why) noexcept override { to->on_peer_down(who, why); }
  void on_limits_changed(peer who) noexcept override { to->on_limits_changed(who); }
  sink_face* lasting() override { return this; }
  Sink* to;
};

/// For mutants that change one kind of event.
struct passing_sink : sink_face {
  explicit passing_sink(sink_face& sink) : to(sink) {}
  void on_packet(peer from, envelope head, std::span<const std::byte> bytes) noexcept override {
    to.on_packet(from, head, bytes);
  }
  void on_flag(peer from, std::uint64_t word) noexcept override { to.on_flag(from, word); }
  void on_peer_down(peer who, errc why) noexcept override { to.on_peer_down(who, why); }
  void on_limits_changed(peer who) noexcept override { to.on_limits_changed(who); }
  sink_face& to;
};

class mutant {
 public:
  mutant(sim::sim_world& world, peer self) : inner_(world, self) {}
  virtual ~mutant() = default;

  virtual peer_limits limits(peer to) const { return inner_.limits(to); }
  virtual post_result send(peer to, envelope head, std::size_t size, const writer& write) {
    return inner_.send(to, head, size, write);
  }
  virtual post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return inner_.put(to, local, key, offset, op);
  }
  virtual post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return inner_.get(to, local, key, offset, op);
  }
  virtual post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                                    std::uint64_t word, operation& op) {
    return inner_.put_with_flag(to, local, key, offset, word, op);
  }
  virtual post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                                std::uint64_t word, operation& op) {
    return inner_.fetch_add(to, local, key, offset, word, op);
  }
  virtual post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                                   std::uint64_t expected, std::uint64_t desired, operation& op) {
    return inner_.compare_swap(to, local, key, offset, expected, desired, op);
  }
  virtual post_result offer(peer to, buffer local, remote_key& ticket, operation& op) {
    return inner_.offer(to, local, ticket, op);
  }
  virtual post_result accept(peer to, buffer local, const remote_key& ticket, operation& op) {
    return inner_.accept(to, local, ticket, op);
  }
  virtual bool withdraw(peer to, const remote_key& ticket) { return inner_.withdraw(to, ticket); }
  virtual table_region register_memory(buffer local) { return inner_.register_memory(local); }
  virtual std::size_t poll(base::nanoseconds now, sink_face& sink) { return inner_.poll(now, sink); }
  virtual std::size_t poll_from(peer from, base::nanoseconds now, sink_face& sink) {
    return inner_.poll_from(from, now, sink);
  }
  virtual bool arm() { return inner_.arm(); }

 private:
  sim::sim_fabric inner_;
};

/// What the suite is instantiated with. `make` says which mutant the fronts made from now on have inside.
class mutant_front {
 public:
  using region = table_region;
  using maker = std::unique_ptr<mutant> (*)(sim::sim_world&, peer);
  static inline maker make = nullptr;

  mutant_front(sim::sim_world& world, peer self) : size_(world.size()), inside_(make(world, self)) {}

  std::span<const std::byte> address() const noexcept { return {}; }
  bool attach(peer to, std::span<const std::byte>) noexcept { return to.index < size_; }
  std::string explain(peer) const { return "a mutant"; }
  peer_limits limits(peer to) const { return inside_->limits(to); }

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write) {
    return inside_->send(to, head, size, std::ref(write));
  }
  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return inside_->put(to, local, key, offset, op);
  }
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return inside_->get(to, local, key, offset, op);
  }
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op) {
    return inside_->put_with_flag(to, local, key, offset, word, op);
  }
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                        std::uint64_t word, operation& op) {
    return inside_->fetch_add(to, local, key, offset, word, op);
  }
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                           std::uint64_t expected, std::uint64_t desired, operation& op) {
    return inside_->compare_swap(to, local, key, offset, expected, desired, op);
  }
  post_result offer(peer to, buffer local, remote_key& ticket, operation& op) {
    return inside_->offer(to, local, ticket, op);
  }
  post_result accept(peer to, buffer local, const remote_key& ticket, operation& op) {
    return inside_->accept(to, local, ticket, op);
  }
  bool withdraw(peer to, const remote_key& ticket) { return inside_->withdraw(to, ticket); }
  region register_memory(buffer local) { return inside_->register_memory(local); }

  template <class Sink>
  std::size_t poll(base::nanoseconds now, Sink& sink) {
    return inside_->poll(now, back(sink));
  }
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds now, Sink& sink) {
    return inside_->poll_from(from, now, back(sink));
  }
  bool arm() { return inside_->arm(); }
  void disarm() noexcept {}

 private:
  template <class Sink>
  sink_face& back(Sink& sink) {
    if (back_ == nullptr) back_ = std::make_unique<sink_back<Sink>>(sink);
    return *back_;
  }
  std::uint32_t size_;
  std::unique_ptr<sink_face> back_;
  std::unique_ptr<mutant> inside_;
};
static_assert(sharing_fabric<mutant_front>);

}  // namespace verbena::contract::mutants
