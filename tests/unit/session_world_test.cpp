// Two simulated endpoints whose links lose, double, reorder and break, and which send packets, puts, flags and
// additions all the time: what each of them may see.
#include "transport/sim/sim_fabric.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <vector>

using namespace verbena;
using namespace verbena::transport;

namespace {

/// What one endpoint sees of the other: everything it sends carries one running number.
struct watcher {
  std::uint64_t packets = 0, flags = 0;
  std::uint64_t last = 0;  ///< of packets and flags alike
  bool in_order = true;
  std::vector<std::uint64_t> flags_seen;
  errc down = errc::success;

  void see(std::uint64_t number) noexcept {
    in_order = in_order && number > last;
    last = number;
  }
  void on_packet(peer, envelope head, std::span<const std::byte> bytes) noexcept {
    in_order = in_order && head.first == ++packets && bytes.size() == head.first % 200;
    see(head.second);
  }
  void on_flag(peer, std::uint64_t word) noexcept {
    see(word);
    flags_seen.push_back(word);
  }
  void on_peer_down(peer, errc why) noexcept { down = why; }
  void on_limits_changed(peer) noexcept {}
};

struct posted {
  operation op;
  std::uint64_t number = 0;
  std::uint64_t answer = 0;
  enum class kind { put, get, flag, add } what = kind::put;
};

class duel {
 public:
  explicit duel(const sim::world_options& options, std::uint64_t seed)
      : world(options), random_(seed), fabrics_{{world, peer{0}}, {world, peer{1}}} {
    for (int i = 0; i < 2; ++i)
      regions_[i] = fabrics_[i].register_memory({reinterpret_cast<std::byte*>(words_[i]), sizeof words_[i]});
  }

  void play(int rounds, std::uint32_t break_ppm) {
    for (int i = 0; i < rounds; ++i) {
      post(static_cast<int>(random_.below(2)));
      if (random_.chance(break_ppm)) world.break_links({0, world.now() + 1 + random_.below(60'000)});
      for (std::uint32_t n = random_.below(4); n > 0; --n) world.step();
      if (const int who = static_cast<int>(random_.below(2)); random_.below(2) == 0)
        fabrics_[who].poll(world.now(), seen[who]);
    }
    finish();
  }
  void finish() {
    do {
      for (int who = 0; who < 2; ++who)
        while (fabrics_[who].poll(world.now(), seen[who]) != 0) {
        }
    } while (world.step());
  }

  void judge() {
    for (int who = 0; who < 2; ++who) {
      INFO("endpoint " << who);
      CHECK(seen[who].in_order);
      CHECK(seen[who].packets == sent_packets_[1 - who]);
      CHECK(seen[who].down == errc::success);
      std::uint64_t added = 0, may_have = 0;
      std::size_t flag = 0;
      const auto& flags = seen[who].flags_seen;
      for (const posted& p : ops_[1 - who]) {
        CHECK(p.op.done());
        const errc e = p.op.result.error;
        const bool once = p.what == posted::kind::flag || p.what == posted::kind::add;
        CHECK((e == errc::success || (once && e == errc::outcome_unknown)));
        unknown += e == errc::outcome_unknown ? 1 : 0;
        if (p.what == posted::kind::add) (e == errc::success ? added : may_have) += 1;
        if (p.what != posted::kind::flag) continue;
        const bool arrived = flag < flags.size() && flags[flag] == p.number;
        flag += arrived ? 1 : 0;
        CHECK((arrived || e == errc::outcome_unknown));
      }
      CHECK(flag == flags.size());  // none twice, none that nobody sent
      CHECK(words_[who][0] >= added);
      CHECK(words_[who][0] <= added + may_have);
    }
    CHECK(world.under_way() == 0);
  }

  sim::sim_world world;
  watcher seen[2];
  std::uint64_t unknown = 0;

 private:
  void post(int who) {
    sim::sim_fabric& from = fabrics_[who];
    const peer to{static_cast<std::uint32_t>(1 - who)};
    const std::uint64_t number = next_number_[who] + 1;
    if (random_.below(2) == 0) {
      const std::uint64_t n = sent_packets_[who] + 1;
      if (from.send(to, {n, number}, n % 200, noop_writer{}) != post_result::done) return;
      sent_packets_[who] = n;
      next_number_[who] = number;
      return;
    }
    posted& p = ops_[who].emplace_back();
    p.number = number;
    p.what = static_cast<posted::kind>(random_.below(4));
    const remote_key key = regions_[1 - who].key();
    const buffer local{reinterpret_cast<std::byte*>(&p.answer), sizeof p.answer};
    post_result result = post_result::down;
    switch (p.what) {
      case posted::kind::put:
        result = from.put(to, local, key, 8, p.op);
        break;
      case posted::kind::get:
        result = from.get(to, local, key, 8, p.op);
        break;
      case posted::kind::flag:
        result = from.put_with_flag(to, local, key, 16, number, p.op);
        break;
      case posted::kind::add:
        result = from.fetch_add(to, local, key, 0, 1, p.op);
        break;
    }
    if (result != post_result::pending)
      ops_[who].pop_back();
    else
      next_number_[who] = number;
  }

  sim::random_source random_;
  alignas(8) std::uint64_t words_[2][4] = {};
  sim::sim_fabric fabrics_[2];
  table_region regions_[2];
  std::deque<posted> ops_[2];
  std::uint64_t sent_packets_[2] = {}, next_number_[2] = {};
};

sim::world_options world_of(std::uint64_t seed) {
  sim::random_source random(seed);
  sim::world_options o;
  o.seed = seed;
  o.window = random.between(1, 20);
  o.jitter = random.below(3) * 2000;
  o.loss_ppm = random.below(3) * 100'000;
  o.duplicate_ppm = random.below(2) * 100'000;
  o.reorder_ppm = random.below(2) * 150'000;
  o.session = true;
  return o;
}

}  // namespace

TEST_CASE("what two endpoints see over links that lose and break", "[session][sim]") {
  sim::counters all;
  std::uint64_t unknown = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    duel d(world_of(seed), seed);
    INFO("seed " << seed);
    d.play(400, 8'000);
    d.judge();
    unknown += d.unknown;
    for (std::size_t i = 0; i < sim::counter_names.size(); ++i)
      all.add(static_cast<sim::counter>(i), d.world.counted()[static_cast<sim::counter>(i)]);
  }
  CHECK(unknown > 20);
  CHECK(unknown == all[sim::counter::outcomes_unknown]);
  using sim::counter;
  for (const counter c : {counter::lost, counter::duplicated, counter::reordered, counter::retransmitted,
                          counter::duplicates_dropped, counter::early_dropped, counter::stale_dropped,
                          counter::acks, counter::outages, counter::resumes, counter::replayed_one_sided}) {
    INFO(sim::counter_names[static_cast<std::size_t>(c)]);
    CHECK(all[c] > 20);
  }
  CHECK(all[counter::links_given_up] == 0);
}

TEST_CASE("a seed of a lossy world repeats itself", "[session][sim]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    duel a(world_of(seed), seed), b(world_of(seed), seed);
    a.play(200, 8'000);
    b.play(200, 8'000);
    CHECK(a.world.now() == b.world.now());
    for (std::size_t i = 0; i < sim::counter_names.size(); ++i)
      CHECK(a.world.counted()[static_cast<sim::counter>(i)] ==
            b.world.counted()[static_cast<sim::counter>(i)]);
  }
}

TEST_CASE("an acknowledgement taken for more than it was loses packets, and the link is given up",
          "[session][sim]") {
  std::uint64_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim::world_options o;
    o.seed = seed;
    o.loss_ppm = 200'000;
    o.drop_ack = true;
    duel d(o, seed);
    d.play(400, 0);
    CHECK(d.seen[0].in_order);
    CHECK(d.seen[1].in_order);
    noticed += d.seen[0].down == errc::link_down && d.seen[1].down == errc::link_down ? 1 : 0;
    CHECK(d.world.under_way() == 0);
  }
  CHECK(noticed >= 15);
}
