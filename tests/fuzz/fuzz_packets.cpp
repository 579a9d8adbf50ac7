// Hostile packets against one engine. The input is a small program: the other rank of a job of two sends
// packets with any bytes in them, while the engine under attack also receives and sends in good faith.
// Nothing it decodes may make it read or write outside its buffers (the address sanitizer looks), end the
// process, or lose an operation: when the attacker has died, every operation must be over.
#include "base/check.hpp"
#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace {

using namespace verbena;
using namespace verbena::runtime;
namespace sim = verbena::transport::sim;

constexpr peer attacker{0}, victim{1};

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
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> some(count);
    const auto known = left_.first(std::min(count, left_.size()));
    std::transform(known.begin(), known.end(), some.begin(), [](std::uint8_t b) { return std::byte{b}; });
    left_ = left_.subspan(known.size());
    return some;
  }

 private:
  std::span<const std::uint8_t> left_;
};

/// What the attacker does with the victim's packets: nothing.
struct deaf_sink {
  void on_packet(peer, transport::envelope, std::span<const std::byte>) noexcept {}
  void on_flag(peer, std::uint64_t) noexcept {}
  void on_peer_down(peer, errc) noexcept {}
  void on_limits_changed(peer) noexcept {}
};

sim::world_options two_endpoints() {
  sim::world_options options;
  options.size = 2;
  options.limits.packet_bytes = 256;
  options.limits.eager_bytes = 600;
  return options;
}

base::settings with_budget(std::uint64_t bytes) {
  base::settings s;
  s.unexpected_budget = bytes;
  return s;
}

class attack {
 public:
  attack(transport::bulk_method bulk, std::uint64_t budget)
      : world_([&] {
          sim::world_options options = two_endpoints();
          options.limits.bulk = bulk;
          return options;
        }()),
        job_(2, false),
        hostile_(world_, attacker),
        target_(context_state::join(job_.member(victim.index), with_budget(budget),
                                    std::make_unique<sim::sim_fabric>(world_, victim))) {}

  void run(script input) {
    while (!input.empty() && pending_.size() < 64) {
      switch (input.byte() % 8) {
        case 0:
          receive(input);
          break;
        case 1:
          send(input);
          break;
        default:
          packet(input);
          break;
      }
      turn();
    }
    world_.kill(attacker);
    for (int quiet = 0; quiet < 3; quiet = turn() ? 0 : quiet + 1) {
    }
    for (const exchange& e : pending_) base::check(e.op.done(), "an operation outlived its only peer");
  }

 private:
  struct exchange {
    operation op;
    std::vector<std::byte> data;
  };

  void packet(script& input) {
    communicator_state& world = target_->world();
    const wire::header head{.what = static_cast<wire::kind>(input.byte() % 36),
                            .flags = input.byte(),
                            .lane = input.byte(),
                            .reserved = 0,
                            .context = {input.byte() % 4 == 0 ? input.byte() : world.context()},
                            .source = static_cast<std::int8_t>(input.byte()) % 3,
                            .label = input.byte() % 3};
    const std::vector<std::byte> payload =
        input.bytes(input.byte() % (two_endpoints().limits.packet_bytes + 1));
    hostile_.send(victim, wire::encode(head), payload.size(),
                  [&](std::byte* at) { std::copy(payload.begin(), payload.end(), at); });
  }

  void receive(script& input) {
    communicator_state& world = target_->world();
    exchange& e = pending_.emplace_back();
    e.data.resize(std::size_t{input.byte()} * 4);
    const tag label = input.byte() % 4 == 0 ? any_tag : tag{input.byte() % 3};
    const bool from_any = input.byte() % 2 == 0;
    target_->engine().receive(e.op, from_any ? nullptr : &attacker,
                              {world.context(), from_any ? any_source : rank{0}, label}, e.data.data(),
                              e.data.size());
  }

  void send(script& input) {
    exchange& e = pending_.emplace_back();
    e.data = input.bytes(std::size_t{input.byte()} * 8);
    target_->engine().send(e.op, target_->world().way_to(rank{0}), e.data.data(), e.data.size(), tag{0});
  }

  bool turn() {
    bool moved = target_->progress(world_.now());
    if (world_.alive(attacker)) moved |= hostile_.poll(world_.now(), ears_) != 0;
    return moved | world_.step();
  }

  sim::sim_world world_;
  in_process_job job_;
  sim::sim_fabric hostile_;
  deaf_sink ears_;
  std::deque<exchange> pending_;  // outlives the engine, which may still point here
  std::unique_ptr<context_state> target_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  attack(static_cast<transport::bulk_method>(data[0] % 3), data[0] % 2 == 0 ? 4U << 20 : 1000)
      .run({data + 1, size - 1});
  return 0;
}
