#include "tests/sim/player.hpp"

#include "collectives/communicator_state.hpp"
#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <memory>
#include <tuple>

namespace verbena::sim_tests {
namespace {

using runtime::context_state;
using transport::operation;
using transport::peer;

struct live_send {
  sent seen;
  std::vector<std::byte> data;
  operation op;
};
struct live_receive {
  received seen;
  operation op;
};
struct live_collective {
  collectives::execution* run = nullptr;
  std::vector<std::uint64_t> in, out;
  std::size_t number = 0;
};

/// One rank: its context, how far it is in its list, and what it has started. Operations stay in place.
struct player_rank {
  std::uint32_t self = 0;
  std::size_t next = 0;
  std::size_t collectives_started = 0;
  std::vector<std::uint64_t> sequence;  ///< per receiver
  std::deque<live_send> sends;
  std::deque<live_receive> receives;
  std::deque<live_collective> collectives;
  std::unique_ptr<context_state> context;  // ends first: operations and buffers outlive it
};

class game {
 public:
  explicit game(const program& p)
      : program_(p),
        random_(p.seed ^ 0x5eedULL),
        world_(p.world),
        job_(p.world.size, false),
        ranks_(p.world.size) {
    base::settings settings;
    settings.eager_limit = p.eager_override;
    for (std::uint32_t r = 0; r < p.world.size; ++r) {
      ranks_[r].self = r;
      ranks_[r].sequence.assign(p.world.size, 0);
      ranks_[r].context = context_state::join(job_.member(r), settings,
                                              std::make_unique<transport::sim::sim_fabric>(world_, peer{r}));
    }
    if (p.victim) world_.kill_at(peer{*p.victim}, p.death_ns);
  }

  verdict run() {
    play_lists();
    take_back_unmatched();
    receive_the_rest();
    return conclude();
  }

 private:
  bool alive(const player_rank& r) const { return world_.alive(peer{r.self}); }

  // Every rank starts its list at its own pace; time moves when it likes, too.
  void play_lists() {
    for (bool unfinished = true; unfinished;) {
      unfinished = false;
      for (player_rank& r : ranks_) {
        if (!alive(r)) continue;
        const auto& list = program_.of[r.self];
        for (std::uint32_t n = random_.below(4); n > 0 && r.next < list.size(); --n) start(r, list[r.next++]);
        unfinished = unfinished || r.next < list.size();
        if (random_.below(2) == 0) r.context->progress(world_.now());
      }
      for (std::uint32_t n = random_.below(12); n > 0 && step(); --n) poll_woken();
    }
    settle();
  }

  bool step() {
    ++counted_.steps;
    return world_.step();
  }
  void poll_woken() {
    for (const std::uint32_t r : world_.take_woken())
      if (alive(ranks_[r])) ranks_[r].context->progress(world_.now());
  }
  /// Until nothing can change any more. What a rank does for itself (loopback, tasks) needs no event, so all
  /// are turned until none of them moves.
  void settle() {
    do {
      for (bool moved = true; moved;) {
        moved = false;
        world_.take_woken();
        for (player_rank& r : ranks_)
          if (alive(r)) moved = r.context->progress(world_.now()) || moved;
      }
    } while (step());
  }

  void start(player_rank& r, const action& a) {
    switch (a.what) {
      case action::kind::send:
        return start_send(r, a);
      case action::kind::receive:
        return start_receive(r, a);
      default:
        return start_collective(r, a);
    }
  }

  void start_send(player_rank& r, const action& a) {
    live_send& s = r.sends.emplace_back();
    const auto to = static_cast<std::uint32_t>(a.partner);
    s.seen = {to, a.label, a.size, false, errc::success};
    const std::uint64_t number = r.sequence[to]++;
    s.data.resize(a.size);
    for (std::size_t i = 0; i < a.size; ++i) s.data[i] = content(r.self, to, number, i);
    ++counted_.sends;
    counted_.selves += to == r.self ? 1 : 0;
    auto& world = r.context->world();
    r.context->engine().send(s.op, world.way_to(rank{a.partner}), s.data.data(), a.size, tag{a.label});
  }

  void start_receive(player_rank& r, const action& a) {
    live_receive& x = r.receives.emplace_back();
    x.seen.want_source = a.partner;
    x.seen.want_label = a.label;
    x.seen.room = a.size;
    x.seen.data.assign(a.size + margin_bytes, margin_byte);
    ++counted_.receives;
    counted_.any_source += a.partner < 0 ? 1 : 0;
    counted_.any_tag += a.label < 0 ? 1 : 0;
    const peer from{static_cast<std::uint32_t>(a.partner)};
    const std::uint32_t context = r.context->world().context();
    r.context->engine().receive(x.op, a.partner < 0 ? nullptr : &from,
                                {context, rank{a.partner}, tag{a.label}}, x.seen.data.data(), a.size);
  }

  void start_collective(player_rank& r, const action& a) {
    live_collective& c = r.collectives.emplace_back();
    c.number = r.collectives_started++;
    auto& home = collectives::communicator_state::of(r.context->world());
    collectives::work call;
    if (a.what == action::kind::barrier) {
      ++counted_.barriers;
      c.run = &home.idle(collectives::method::dissemination);
    } else {
      ++counted_.allreduces;
      for (std::size_t i = 0; i < a.size; ++i) c.in.push_back(element_of(r.self, c.number, i));
      c.out.assign(a.size, 0);
      call = {c.in.data(),
              c.out.data(),
              a.size,
              sizeof(std::uint64_t),
              collectives::find_kernel(element::u64, reduction::sum, home.instructions),
              1U << 14};
      c.run = &home.idle(a.ring ? collectives::method::ring : collectives::method::recursive_doubling);
    }
    c.run->start(call);
    r.context->world().add_task(*c.run);
  }
  static std::uint64_t element_of(std::uint32_t who, std::size_t number, std::size_t at) {
    return (who + 1) * 0x9e3779b97f4a7c15ULL + number * 31 + at * at;
  }

  void take_back_unmatched() {
    for (player_rank& r : ranks_) {
      if (!alive(r)) continue;
      for (live_receive& x : r.receives)
        if (x.op.pending() && r.context->engine().cancel(x.op)) {
          x.seen.cancelled = true;
          ++counted_.cancelled;
        }
    }
  }

  /// What the living sent and nobody took. Sources are named: from anybody is refused once somebody died.
  void receive_the_rest() {
    for (player_rank& r : ranks_) {
      if (!alive(r)) continue;
      std::vector<std::size_t> open(ranks_.size(), 0);
      for (const player_rank& from : ranks_)
        if (alive(from))
          for (const live_send& s : from.sends) open[from.self] += s.seen.to == r.self ? 1 : 0;
      for (const live_receive& x : r.receives) {
        const errc e = x.op.result.error;
        if (x.op.done() && !x.seen.cancelled && (e == errc::success || e == errc::truncated) &&
            open[static_cast<std::size_t>(x.op.result.source.value)] > 0)
          --open[static_cast<std::size_t>(x.op.result.source.value)];
      }
      constexpr std::size_t enough = 300'000;
      for (std::uint32_t from = 0; from < ranks_.size(); ++from)
        for (; open[from] > 0; --open[from])
          start_receive(r, {action::kind::receive, static_cast<std::int32_t>(from), -1, enough});
    }
    settle();
  }

  verdict conclude() {
    observed seen;
    verdict v;
    std::optional<std::uint32_t> victim;
    if (program_.victim && !world_.alive(peer{*program_.victim})) victim = program_.victim;
    seen.receives.resize(ranks_.size());
    seen.sends.resize(ranks_.size());
    for (player_rank& r : ranks_) {
      for (live_send& s : r.sends) {
        s.seen.ended = s.op.done();
        s.seen.error = s.op.result.error;
        seen.sends[r.self].push_back(s.seen);
      }
      for (live_receive& x : r.receives) {
        const transport::outcome& o = x.op.result;
        x.seen.ended = x.op.done();
        x.seen.error = o.error;
        x.seen.source = o.source.value;
        x.seen.label = o.label.value;
        x.seen.bytes = o.bytes;
        x.seen.sent_bytes = o.sent_bytes;
        counted_.truncated += o.error == errc::truncated ? 1 : 0;
        counted_.failed += o.error == errc::peer_failed ? 1 : 0;
        seen.receives[r.self].push_back(std::move(x.seen));
      }
    }
    v.complaints = judge(seen, victim);
    for (player_rank& r : ranks_)
      if (alive(r)) judge_collectives(r, victim.has_value(), v.complaints);
    if (!victim) {
      if (world_.under_way() != 0) v.complaints.push_back("the world still carries something at the end");
      for (player_rank& r : ranks_)
        if (!r.context->engine().nothing_pending())
          v.complaints.push_back(fmt::format("rank {}: the engine keeps messages at the end", r.self));
    }
    v.fingerprint = fingerprint(seen);
    counted_.world = world_.counted();
    v.counted = counted_;
    return v;
  }

  void judge_collectives(player_rank& r, bool somebody_died, std::vector<std::string>& complaints) const {
    for (const live_collective& c : r.collectives) {
      if (!c.run->done()) {
        complaints.push_back(fmt::format("rank {} collective {}: never ended", r.self, c.number));
        continue;
      }
      if (somebody_died) continue;
      for (std::size_t i = 0; i < c.out.size(); ++i) {
        std::uint64_t sum = 0;
        for (std::uint32_t who = 0; who < ranks_.size(); ++who) sum += element_of(who, c.number, i);
        if (c.out[i] == sum) continue;
        complaints.push_back(fmt::format("rank {} collective {}: element {} is wrong", r.self, c.number, i));
        break;
      }
    }
  }

  std::uint64_t fingerprint(const observed& seen) const {
    std::uint64_t hash = static_cast<std::uint64_t>(world_.now());
    auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
    for (const auto& list : seen.receives)
      for (const received& x : list) {
        mix(static_cast<std::uint64_t>(x.source));
        mix(x.sent_bytes);
        mix(static_cast<std::uint64_t>(x.error));
      }
    for (std::size_t i = 0; i < transport::sim::counter_names.size(); ++i)
      mix(world_.counted()[static_cast<transport::sim::counter>(i)]);
    return hash;
  }

  const program& program_;
  random_source random_;
  transport::sim::sim_world world_;
  runtime::in_process_job job_;
  std::vector<player_rank> ranks_;
  tally counted_;
};

}  // namespace

verdict play(const program& p) {
  return game(p).run();
}

void tally::add(const tally& other) {
  auto all = [](tally& t) {
    return std::array{&t.sends,     &t.receives, &t.any_source, &t.any_tag, &t.truncated, &t.selves,
                      &t.cancelled, &t.barriers, &t.allreduces, &t.failed,  &t.steps};
  };
  tally copy = other;
  const auto mine = all(*this), theirs = all(copy);
  for (std::size_t i = 0; i < mine.size(); ++i) *mine[i] += *theirs[i];
  for (std::size_t i = 0; i < transport::sim::counter_names.size(); ++i) {
    const auto which = static_cast<transport::sim::counter>(i);
    world.add(which, other.world[which]);
  }
}

std::string tally::text() const {
  std::string line = fmt::format(
      "sends={} receives={} any_source={} any_tag={} truncated={} selves={} cancelled={} barriers={} "
      "allreduces={} "
      "failed={} steps={}",
      sends, receives, any_source, any_tag, truncated, selves, cancelled, barriers, allreduces, failed,
      steps);
  for (std::size_t i = 0; i < transport::sim::counter_names.size(); ++i)
    line += fmt::format(" {}={}", transport::sim::counter_names[i],
                        world[static_cast<transport::sim::counter>(i)]);
  return line;
}

}  // namespace verbena::sim_tests
