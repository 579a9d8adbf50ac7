// Hostile packets against one engine. The input is a small program: the other rank of a job of two sends
// packets with any bytes in them, while the engine under attack also receives and sends in good faith.
// Nothing it decodes may make it read or write outside its buffers (the address sanitizer looks), end the
// process, or lose an operation: when the attacker has died, every operation must be over.
#include "tests/fuzz/hostile_peer.hpp"

namespace {

using namespace verbena;
using namespace verbena::fuzz;

sim::world_options two_endpoints(transport::bulk_method bulk) {
  sim::world_options options;
  options.limits.packet_bytes = 256;
  options.limits.eager_bytes = 600;
  options.limits.bulk = bulk;
  return options;
}

base::settings with_budget(std::uint64_t bytes) {
  base::settings s;
  s.unexpected_budget = bytes;
  return s;
}

class attack : duel<deaf> {
 public:
  attack(transport::bulk_method bulk, std::uint64_t budget)
      : duel(two_endpoints(bulk), with_budget(budget)) {}

  void run(script input) {
    while (!input.empty() && operations_.size() < 64) {
      switch (input.below(8)) {
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
    end();
  }

 private:
  void packet(script& input) {
    communicator_state& world = target_->world();
    const wire::header head{.what = static_cast<wire::kind>(input.byte() % 36),
                            .flags = input.byte(),
                            .lane = input.byte(),
                            .reserved = 0,
                            .context = {input.byte() % 4 == 0 ? input.byte() : world.context()},
                            .source = static_cast<std::int8_t>(input.byte()) % 3,
                            .label = input.byte() % 3};
    const std::vector<std::byte> payload = input.bytes(input.byte());
    post<wire::fin_body>(head, nullptr, payload);
  }

  void receive(script& input) {
    const std::size_t room = std::size_t{input.byte()} * 4;
    const tag label = input.below(4) == 0 ? any_tag : tag{input.below(3)};
    duel::receive(room, input.below(2) == 0, label);
  }

  void send(script& input) { duel::send(input.bytes(std::size_t{input.byte()} * 8), false); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  attack(static_cast<transport::bulk_method>(data[0] % 3), data[0] % 2 == 0 ? 4U << 20 : 1000)
      .run({data + 1, size - 1});
  return 0;
}
