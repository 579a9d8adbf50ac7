// A hostile peer that knows the protocol: it keeps the handles, keys and tickets the engine sends it and
// answers with them, rightly or bent in one field, twice, late, or to the wrong question. So the input
// reaches the states behind a right handle, which any bytes (fuzz_packets) seldom do. What must hold is the
// same: no byte outside a buffer, no end of the process, and every operation over once the peer has died.
#include "tests/fuzz/hostile_peer.hpp"

#include <cstring>

namespace {

using namespace verbena;
using namespace verbena::fuzz;

/// What the victim said, by kind: its announcements (RTS, envelopes), what it wants to hear of, and
/// clearances (CTS).
struct ears : deaf {
  std::vector<wire::rts_body> announced;
  std::vector<wire::cts_body> cleared;
  void on_packet(peer, transport::envelope e, std::span<const std::byte> payload) noexcept {
    const wire::header head = wire::decode(e);
    if (head.what == wire::kind::rts)
      if (const auto body = wire::take<wire::rts_body>(payload)) announced.push_back(*body);
    if (head.what == wire::kind::envelope_only || head.what == wire::kind::eager_first)
      if (const auto body = wire::take<wire::eager_body>(payload))
        announced.push_back(
            {.total = body->total, .sender = body->sender, .key = {}, .method = 2, .reserved = {}});
    if (head.what == wire::kind::cts)
      if (const auto body = wire::take<wire::cts_body>(payload)) cleared.push_back(*body);
  }
};

class attack : duel<ears> {
 public:
  attack(std::uint8_t how, std::uint8_t seed) : duel(make(how, seed), settings_for(how)) {}

  void run(script input) {
    while (!input.empty() && operations_.size() < 48) {
      act(input);
      for (std::uint32_t n = input.below(4); n > 0; --n) turn();
    }
    end();
  }

 private:
  struct bait {  // memory and operations of the attacker, for real puts and offers
    std::vector<std::byte> data;
    operation op;
  };

  static sim::world_options make(std::uint8_t how, std::uint8_t seed) {
    sim::world_options o;
    o.seed = seed;
    o.limits.packet_bytes = 256;
    o.limits.eager_bytes = 300;
    o.limits.bulk = static_cast<transport::bulk_method>(how % 3);
    o.again_ppm = how % 2 == 0 ? 0 : 300'000;
    o.refuse_region_ppm = how % 5 == 0 ? 300'000 : 0;
    return o;
  }

  static base::settings settings_for(std::uint8_t how) {
    base::settings s;
    static constexpr std::uint64_t budgets[] = {4U << 20, 2000, 0};
    s.unexpected_budget = budgets[how / 16 % 3];
    return s;
  }

  void act(script& input) {
    switch (input.below(13)) {
      case 0:
      case 1:
        return receive(input);
      case 2:
        return send(input);
      case 3:
        return eager(input);
      case 4:
        return announce(input);
      case 5:
        return clear(input);
      case 6:
        return finish(input);
      case 7:
        return data(input);
      case 8:
        return put(input);
      case 9:
        return accept(input);
      case 10:
        return grant(input);
      case 11:
        return envelope(input);
      default:
        return acknowledge(input);
    }
  }

  void receive(script& input) {
    const std::size_t room = std::size_t{input.below(256)} * 8;
    const bool any = input.below(3) == 0;
    duel::receive(room, any, input.below(3) == 0 ? any_tag : tag{input.below(2)});
  }
  void send(script& input) {
    const std::size_t bytes = std::size_t{input.below(256)} * 8;
    duel::send(std::vector<std::byte>(bytes), input.below(4) == 0);
  }

  void eager(script& input) {
    const wire::eager_body body{.total = input.below(3) == 0 ? input.size() : input.below(256) * 3,
                                .sender = {input.below(4), input.below(4)}};
    const std::size_t bytes = input.below(200);
    static constexpr wire::kind kinds[] = {wire::kind::eager, wire::kind::eager_first,
                                           wire::kind::eager_more};
    const wire::kind what = kinds[input.below(3)];
    post(what, input, what == wire::kind::eager_first ? &body : nullptr, bytes);
  }
  void announce(script& input) {
    wire::rts_body body{.total = input.below(4) == 0 ? input.size() : input.below(256) * 8,
                        .sender = {input.below(4), input.below(4)},
                        .key = {},
                        .method = static_cast<std::uint8_t>(input.below(4)),
                        .reserved = {}};
    if (input.below(2) == 0) {
      bait& b = baits_.emplace_back();
      b.data.resize(std::min<std::uint64_t>(body.total, 4096));
      hostile_.offer(victim, {b.data.data(), b.data.size()}, body.key, b.op);
    }
    post(wire::kind::rts, input, &body, 0);
  }
  void clear(script& input) {
    if (ears_.announced.empty()) return;
    const auto& rts = ears_.announced[input.below(static_cast<std::uint32_t>(ears_.announced.size()))];
    wire::cts_body body{.sender = rts.sender,
                        .receiver = {input.below(3), input.below(3)},
                        .key = {},
                        .bytes = rts.total,
                        .offset = 0};
    input.bend(body.bytes);
    input.bend(body.offset);
    if (input.below(2) == 0) {
      bait& b = baits_.emplace_back();
      b.data.resize(input.below(2) == 0 ? rts.total : input.below(256));
      regions_.push_back(hostile_.register_memory({b.data.data(), b.data.size()}));
      body.key = regions_.back().key();
    }
    post(wire::kind::cts, input, &body, 0);
  }
  void finish(script& input) {
    wire::fin_body body{.to = {input.below(4), input.below(4)},
                        .bytes = input.below(256),
                        .error = static_cast<std::uint8_t>(input.below(20)),
                        .from_sender = static_cast<std::uint8_t>(input.below(2)),
                        .reserved = {}};
    if (!ears_.cleared.empty() && input.below(2) == 0)
      body.to = ears_.cleared[input.below(static_cast<std::uint32_t>(ears_.cleared.size()))].receiver;
    else if (!ears_.announced.empty())
      body.to = ears_.announced[input.below(static_cast<std::uint32_t>(ears_.announced.size()))].sender;
    post(wire::kind::fin, input, &body, 0);
  }
  void data(script& input) {
    if (ears_.cleared.empty()) return;
    const auto& cts = ears_.cleared[input.below(static_cast<std::uint32_t>(ears_.cleared.size()))];
    wire::data_body body{.receiver = cts.receiver, .offset = offset_};
    input.bend(body.offset);
    const std::size_t bytes = input.below(230);
    offset_ = input.below(4) == 0 ? 0 : offset_ + bytes;
    post(wire::kind::data, input, &body, bytes);
  }
  void put(script& input) {
    if (ears_.cleared.empty()) return;
    const auto& cts = ears_.cleared[input.below(static_cast<std::uint32_t>(ears_.cleared.size()))];
    bait& b = baits_.emplace_back();
    b.data.resize(input.below(2) == 0 ? std::min<std::uint64_t>(cts.bytes, 8192) : input.below(256) * 16);
    std::uint64_t at = 0;
    input.bend(at);
    hostile_.put(victim, {b.data.data(), b.data.size()}, cts.key, at, b.op);
  }
  void accept(script& input) {
    if (ears_.announced.empty()) return;
    const auto& rts = ears_.announced[input.below(static_cast<std::uint32_t>(ears_.announced.size()))];
    bait& b = baits_.emplace_back();
    b.data.resize(std::min<std::uint64_t>(rts.total, 1 << 20));
    hostile_.accept(victim, {b.data.data(), b.data.size()}, rts.key, b.op);
  }

  void grant(script& input) {
    granted_ += input.below(256) * 4;
    wire::grant_body body{.released = granted_};
    input.bend(body.released);
    post(wire::kind::grant, input, &body, 0);
  }
  void envelope(script& input) {
    const wire::eager_body body{.total = input.below(3) == 0 ? input.size() : input.below(256) * 3,
                                .sender = {input.below(4), input.below(4)}};
    for (std::uint32_t n = input.below(3) == 0 ? 40 : 1; n > 0; --n)
      post(wire::kind::envelope_only, input, &body, 0);
  }
  void acknowledge(script& input) {
    wire::handle who{input.below(4), input.below(4)};
    if (!ears_.announced.empty())
      who = ears_.announced[input.below(static_cast<std::uint32_t>(ears_.announced.size()))].sender;
    post(wire::kind::sync_ack, input, &who, 0);
  }

  template <class Body>
  void post(wire::kind what, script& input, const Body* body, std::size_t more) {
    const wire::header head{.what = what,
                            .flags = static_cast<std::uint8_t>(input.below(2)),
                            .lane = 0,
                            .reserved = 0,
                            .context = {target_->world().context()},
                            .source = 0,
                            .label = static_cast<std::int32_t>(input.below(2))};
    duel::post(head, body, std::vector<std::byte>(more, std::byte{0x5a}));
  }

  std::deque<bait> baits_;
  std::vector<transport::table_region> regions_;
  std::uint64_t offset_ = 0;
  std::uint64_t granted_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  attack(data[0], data[1]).run({data + 2, size - 2});
  return 0;
}
