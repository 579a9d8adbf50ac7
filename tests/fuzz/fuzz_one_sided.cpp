// One-sided access against a hostile peer: it knows the keys of some regions of the victim, live and revoked,
// and asks with them, rightly or bent in one field; and it answers what the victim asks of it, rightly, bent,
// twice or unasked. No byte of the victim outside its regions may change, nor any byte of what it only lends
// to be read.
#include "runtime/one_sided.hpp"
#include "tests/fuzz/hostile_peer.hpp"

#include <optional>

namespace {

using namespace verbena;
using namespace verbena::fuzz;
using wire::one_sided_kind;

constexpr std::size_t region_bytes = 1000, guard_bytes = 64;
constexpr std::byte guard{0xa5};

struct ears : deaf {
  std::vector<wire::one_sided_body> asked;
  void on_packet(peer, transport::envelope e, std::span<const std::byte> payload) noexcept {
    if (wire::decode(e).what == wire::kind::one_sided)
      if (const auto body = wire::take<wire::one_sided_body>(payload)) asked.push_back(*body);
  }
};

sim::world_options endpoints(std::uint8_t how, std::uint8_t seed) {
  sim::world_options o;
  o.seed = seed;
  o.limits.packet_bytes = 256;
  o.limits.native_put = how % 2 == 0;
  o.limits.native_atomics = how % 4 == 0;
  o.again_ppm = how % 3 == 0 ? 300'000 : 0;
  return o;
}

class attack : duel<ears> {
 public:
  attack(std::uint8_t how, std::uint8_t seed) : duel(endpoints(how, seed), {}) {
    for (std::size_t i = 0; i < 3; ++i) lend();
    lent_[2].held.reset();
  }

  void run(script input) {
    while (!input.empty() && accesses_.size() < 48) {
      switch (input.below(6)) {
        case 0:
          access(input);
          break;
        case 1:
        case 2:
          ask(input);
          break;
        case 3:
        case 4:
          answer(input);
          break;
        default:
          if (input.below(8) == 0 && lent_.size() < 8) lend();
          if (input.below(8) == 0) lent_[input.below(static_cast<std::uint32_t>(lent_.size()))].held.reset();
          break;
      }
      for (std::uint32_t n = input.below(4); n > 0; --n) turn();
    }
    end();
    for (const started& one : accesses_) {
      base::check(one.op.done(), "an access outlived its only peer");
      base::check(one.data[one.size] == guard, "more came back than was asked for");
    }
    for (const lent& one : lent_)
      for (std::size_t i = 0; i < guard_bytes; ++i)
        base::check(one.memory[i] == guard && one.memory[guard_bytes + region_bytes + i] == guard,
                    "a byte outside a region has changed");
  }

 private:
  struct lent {  // 8-byte aligned: so is what operator new gives
    std::vector<std::byte> memory{2 * guard_bytes + region_bytes, guard};
    transport::remote_key key;
    std::unique_ptr<registration> held;
  };
  struct started {
    operation op;
    std::vector<std::byte> data;
    std::size_t size = 0;
  };

  void lend() {
    lent& one = lent_.emplace_back();
    one.held =
        std::make_unique<registration>(target_->engine(), target_->fabric(), target_->doors(),
                                       transport::buffer{one.memory.data() + guard_bytes, region_bytes});
    one.key = one.held->own;
  }

  static wire::one_sided_body any_body(script& input) {
    wire::one_sided_body body;
    body.what = static_cast<one_sided_kind>(1 + input.below(input.below(8) == 0 ? 8 : 6));
    body.bytes = input.below(4) == 0 ? 8 : input.below(200);
    body.offset = std::uint64_t{input.below(256)} * 4;
    body.last = input.below(5) == 0 ? input.byte() : std::uint8_t{1};
    body.operands[0] = input.below(3);
    body.operands[1] = input.byte();
    return body;
  }

  void ask(script& input) {
    wire::one_sided_body body = any_body(input);
    body.origin = {input.below(4), input.below(4)};
    body.key = lent_[input.below(static_cast<std::uint32_t>(lent_.size()))].key;
    if (input.below(4) == 0) {
      input.bend(body.offset);
      input.bend(body.bytes);
      input.bend(body.key.size);
      input.bend(body.key.address);
      if (input.below(4) == 0) body.key.handle ^= input.byte();
      if (input.below(4) == 0) body.key.keys[input.below(2)] ^= input.byte();
    }
    const bool brings = body.what == one_sided_kind::put || body.what == one_sided_kind::put_with_flag;
    const std::size_t more = input.below(16) == 0 ? input.below(170)
                             : brings             ? std::min<std::uint64_t>(body.bytes, 170)
                                                  : 0;
    post(wire::header{.what = wire::kind::one_sided,
                      .flags = 0,
                      .lane = 0,
                      .reserved = 0,
                      .context = {},
                      .source = 0,
                      .label = 0},
         &body, std::vector<std::byte>(more, std::byte{0x11}));
  }

  void answer(script& input) {
    wire::one_sided_body body = any_body(input);
    if (!ears_.asked.empty()) body = ears_.asked[input.below(static_cast<std::uint32_t>(ears_.asked.size()))];
    std::size_t more = 0;
    if (body.what == one_sided_kind::get) {
      more = std::min<std::uint64_t>(body.bytes, input.below(3) == 0 ? input.below(170) : 170);
      body.last = more == body.bytes ? 1 : 0;
      body.offset = 0;
      if (input.below(2) == 0) {  // the next piece of the same
        body.offset = came_;
        came_ += more;
      } else {
        came_ = more;
      }
      body.bytes = more;
    }
    body.error = input.below(6) == 0 ? input.byte() : std::uint8_t{0};
    input.bend(body.offset);
    input.bend(body.bytes);
    if (input.below(8) == 0) body.last = input.byte();
    post(wire::header{.what = wire::kind::one_sided_reply,
                      .flags = 0,
                      .lane = 0,
                      .reserved = 0,
                      .context = {},
                      .source = 0,
                      .label = 0},
         &body, std::vector<std::byte>(more, std::byte{0x22}));
  }

  /// The victim asks; the attacker's memory is not registered, so native accesses are refused.
  void access(script& input) {
    started& one = accesses_.emplace_back();
    one_sided_call call;
    call.body = any_body(input);
    if (call.body.what > one_sided_kind::confirm) call.body.what = one_sided_kind::get;
    const bool atomic =
        call.body.what == one_sided_kind::fetch_add || call.body.what == one_sided_kind::compare_swap;
    call.body.bytes = atomic                                      ? 8
                      : call.body.what == one_sided_kind::confirm ? 0
                                                                  : std::uint64_t{input.byte()} * 4;
    call.body.last = 0;
    one.size = call.body.bytes;
    one.data.assign(one.size + 1, guard);
    call.local = one.data.data();
    call.native.fabric =
        static_cast<std::uint8_t>(input.below(2) == 0 ? transport::route::sim : transport::route::none);
    target_->engine().one_sided(one.op, target_->engine().meet(attacker), call);
  }

  // Before the engine in time of death: end() has seen to it that it holds none of them.
  std::deque<started> accesses_;
  std::deque<lent> lent_;
  std::size_t came_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  attack(data[0], data[1]).run({data + 2, size - 2});
  return 0;
}
