// One engine under attack, for fuzz targets: the other rank of a simulated job of two is the attacker, whose
// packets the target makes of the fuzzer's bytes, while the victim also receives and sends in good faith.
// What must hold, whatever is sent: no byte outside a buffer is touched (the address sanitizer looks), the
// process does not end, and when the attacker has died every operation of the victim is over.
#pragma once

#include "base/check.hpp"
#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace verbena::fuzz {

using namespace verbena::runtime;
namespace sim = verbena::transport::sim;

inline constexpr peer attacker{0}, victim{1};

/// The fuzzer's bytes, taken from the front; zeros when they are used up.
class script {
 public:
  script(const std::uint8_t* data, std::size_t size) : left_(data, size) {}
  bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  std::uint32_t below(std::uint32_t bound) { return byte() % bound; }
  /// Any magnitude.
  std::uint64_t size() {
    const std::uint64_t digits = byte();
    return digits << byte() % 60;
  }
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> some(count);
    const auto known = left_.first(std::min(count, left_.size()));
    std::transform(known.begin(), known.end(), some.begin(), [](std::uint8_t b) { return std::byte{b}; });
    left_ = left_.subspan(known.size());
    return some;
  }
  /// Mostly leaves it right.
  void bend(std::uint64_t& field) {
    if (below(4) == 0) field ^= size();
  }

 private:
  std::span<const std::uint8_t> left_;
};

/// What the attacker does with the victim's packets: nothing. The base of those that listen.
struct deaf {
  void on_packet(peer, transport::envelope, std::span<const std::byte>) noexcept {}
  void on_flag(peer, std::uint64_t) noexcept {}
  void on_peer_down(peer, errc) noexcept {}
  void on_limits_changed(peer) noexcept {}
};

template <class Ears>
class duel {
 public:
  duel(sim::world_options world, const base::settings& settings)
      : world_([&] {
          world.size = 2;
          return world;
        }()),
        job_(2, false),
        hostile_(world_, attacker),
        target_(context_state::join(job_.member(victim.index), settings,
                                    std::make_unique<sim::sim_fabric>(world_, victim))) {}

 protected:
  struct exchange {
    operation op;
    std::vector<std::byte> data;
  };

  void receive(std::size_t room, bool from_any, tag label) {
    exchange& e = operations_.emplace_back();
    e.data.resize(room);
    target_->engine().receive(e.op, from_any ? nullptr : &attacker,
                              {target_->world().context(), from_any ? any_source : rank{0}, label},
                              e.data.data(), e.data.size());
  }
  void send(std::vector<std::byte> data, bool synchronous) {
    exchange& e = operations_.emplace_back();
    e.data = std::move(data);
    target_->engine().send(e.op, target_->world().way_to(rank{0}), e.data.data(), e.data.size(), tag{0},
                           synchronous);
  }

  /// A packet of the attacker: the header, a body if there is one, and some bytes.
  template <class Body>
  void post(const wire::header& head, const Body* body, std::span<const std::byte> more) {
    const std::size_t front = body == nullptr ? 0 : sizeof(Body);
    if (front + more.size() > world_.options().limits.packet_bytes) return;
    hostile_.send(victim, wire::encode(head), front + more.size(), [&](std::byte* at) {
      if (body != nullptr) at = wire::put(at, *body);
      std::copy(more.begin(), more.end(), at);
    });
  }

  bool turn() {
    bool moved = target_->progress(world_.now());
    if (world_.alive(attacker)) moved |= hostile_.poll(world_.now(), ears_) != 0;
    return moved | world_.step();
  }

  /// The attacker dies.
  void end() {
    world_.kill(attacker);
    for (int quiet = 0; quiet < 3; quiet = turn() ? 0 : quiet + 1) {
    }
    for (const exchange& e : operations_) {
      base::check(e.op.done(), "an operation outlived its only peer");
      base::check(e.op.result.bytes <= e.data.size(), "more bytes arrived than there was room for");
    }
    base::check(target_->engine().nothing_pending(), "something is left of a peer that is gone");
  }

  sim::sim_world world_;
  in_process_job job_;
  Ears ears_;
  std::deque<exchange> operations_;  // outlives the engine, which may still point here
  sim::sim_fabric hostile_;
  std::unique_ptr<context_state> target_;
};

}  // namespace verbena::fuzz
