#include "tests/sim/player.hpp"

#include "tests/sim/rank_player.hpp"

#include <algorithm>
#include <deque>

namespace verbena::sim_tests {
namespace {

class director {
 public:
  director(const program& p, plant fault) : p_(p), t_(p), fault_(fault) {
    for (std::uint32_t r = 0; r < p.world.size; ++r) ranks_.emplace_back(t_, r);
    if (p.victim && p.death_put == 0) t_.world.kill_at(peer{*p.victim}, p.death_ns);
  }

  verdict run() {
    t_.counted.note_if(p_.settings.allreduce != "auto", event::forced_algorithms);
    play_lists();
    t_.at_end = true;
    settle();
    for (rank_player* r : present()) r->take_back_receives();
    receive_the_rest();
    if (t_.dead())
      for (rank_player* r : present()) r->take_back_receives();
    return conclude();
  }

 private:
  bool living(const rank_player& r) const { return t_.alive(index(r)); }
  std::uint32_t index(const rank_player& r) const {
    return static_cast<std::uint32_t>(
        std::find_if(ranks_.begin(), ranks_.end(), [&](const rank_player& o) { return &o == &r; }) -
        ranks_.begin());
  }
  /// Alive, and not left hanging.
  std::vector<rank_player*> present() {
    std::vector<rank_player*> found;
    for (rank_player& r : ranks_)
      if (living(r) && !r.hung()) found.push_back(&r);
    return found;
  }

  // Every rank plays its list at its own pace; time moves when it likes, too.
  void play_lists() {
    const auto all_over = [&] {
      return std::all_of(ranks_.begin(), ranks_.end(), [](const rank_player& r) { return r.over(); });
    };
    while (!all_over()) {
      for (rank_player& r : ranks_)
        if (!r.over() && chance(t_.random, 2)) r.turn();
      bool time_stands = false;
      for (std::uint32_t n = t_.random.below(12); n > 0 && !time_stands; --n) {
        time_stands = !step();
        if (!time_stands) turn_woken();
      }
      if (time_stands && !all_over() && still() && !untie() && !give_up()) return;
    }
  }

  bool step() {
    if (fault_ == plant::lose_grant) lose_grant();
    if (fault_ == plant::stale_context) mistake_context();
    ++t_.counted.steps;
    if (p_.death_put != 0 && t_.world.counted()[transport::sim::counter::puts] >= p_.death_put)
      t_.world.kill(peer{*p_.victim});
    return t_.world.step();
  }

  // The planted faults, each once in a run.
  void lose_grant() {
    known_.resize(ranks_.size() * ranks_.size());
    for (std::uint32_t from = 0; from < ranks_.size(); ++from)
      for (std::uint32_t to = 0; to < ranks_.size(); ++to) {
        auto& budget = ranks_[from].context().engine().meet(peer{to}).outgoing;
        std::uint64_t& known = known_[from * ranks_.size() + to];
        const std::uint64_t news = budget.released - std::exchange(known, budget.released);
        if (planted_ || news == 0 || budget.left < news || !chance(t_.random, 4)) continue;
        planted_ = true;
        budget.left -= news;
        budget.released -= news;
      }
  }
  void mistake_context() {
    using contexts = runtime::context_table;
    for (std::uint32_t r = 0; r < ranks_.size() && !planted_; ++r)
      for (std::uint32_t slot = runtime::context_state::self_slot + 1; slot < 16 && !planted_; ++slot) {
        runtime::engine& engine = ranks_[r].context().engine();
        const std::uint64_t generation = engine.contexts().generation(slot);
        const std::uint32_t context = contexts::context_of(slot, generation);
        if (generation < 2 || !t_.alive(r) || engine.contexts().of(context) != contexts::standing::live)
          continue;
        const peer from{(r + 1) % p_.world.size};
        const std::vector<std::byte> late(33, std::byte{0x5c});
        auto& budget = ranks_[from.index].context().engine().meet(peer{r}).outgoing;
        if (!t_.alive(from.index) || !budget.covers(late.size())) continue;
        budget.spend(late.size());  // it was sent, after all
        planted_ = true;
        engine.on_packet(from, runtime::wire::pack(runtime::wire::kind::eager, context, 0, 0), late);
      }
  }

  void turn_woken() {
    for (const std::uint32_t r : t_.world.take_woken())
      if (t_.alive(r) && (ranks_[r].progress(), !ranks_[r].over()) && chance(t_.random, 2)) ranks_[r].turn();
  }
  std::uint64_t deeds() const {
    std::uint64_t sum = 0;
    for (const rank_player& r : ranks_) sum += r.deeds();
    return sum;
  }

  /// True if nothing can change any more by itself. What a rank does for itself needs no event, so all are turned, a few
  /// times over.
  bool still() {
    const std::uint64_t before = deeds();
    for (int round = 0; round < 3; ++round) {
      t_.world.take_woken();
      for (rank_player& r : ranks_) {
        if (living(r) && r.progress()) return false;
        if (!r.over()) r.turn();
      }
      if (deeds() != before || step()) return false;
    }
    return true;
  }
  void settle() {
    do {
      for (bool moved = true; moved;) {
        moved = false;
        t_.world.take_woken();
        for (rank_player& r : ranks_)
          if (living(r)) moved = r.progress() || moved;
      }
    } while (step());
  }

  /// First messages for those who wait for one, else receives for those who wait for that.
  bool untie() {
    for (const bool messages : {true, false}) {
      bool untied = false;
      for (rank_player& r : ranks_)
        if (!r.over())
          if (const auto want = r.wants(messages)) untied = help(r, *want) || untied;
      if (untied && ++untied_ > most_knots) {
        for (rank_player& r : ranks_)
          if (!r.over()) t_.complain(index(r), "waits in {}, whatever is done for it", r.whereabouts());
        return false;
      }
      if (untied) return true;
    }
    return false;
  }
  bool help(rank_player& who, const rank_player::want& want) {
    const group& in = p_.groups[want.on];
    const std::int32_t me = *in.rank_of(index(who));
    const std::int32_t with =
        want.with >= 0
            ? want.with
            : static_cast<std::int32_t>(t_.random.below(static_cast<std::uint32_t>(in.members.size())));
    rank_player& other = ranks_[in.members[static_cast<std::size_t>(with)]];
    rank_player& helper = want.with < 0 && (!living(other) || !other.holds(want.on)) ? who : other;
    if (!living(helper) || helper.hung() || !helper.holds(want.on)) return false;
    t_.counted.note(event::knots);
    who.was_helped();
    if (want.message)
      helper.send_for_knot(want.on, me, want.label);
    else
      helper.receive_for_knot(want.on, me);
    return true;
  }

  /// Somebody waits for ever. After a death that may be: whoever heard of it has given up, and others were not to be told.
  bool give_up() {
    bool any = false;
    for (rank_player& r : ranks_)
      if (!r.over() && r.looks()) {
        r.give_up_looking();
        any = true;
      }
    if (any) return true;
    for (rank_player& r : ranks_) {
      if (r.over()) continue;
      if (t_.dead())
        t_.counted.note(event::hung_by_death);
      else
        t_.complain(index(r), "waits for ever in {}", r.whereabouts());
      r.hang();
    }
    return true;
  }

  /// What the living sent and nobody took. Sources are named: from anybody is refused once somebody died.
  void receive_the_rest() {
    constexpr auto taken = [](const received& r) {
      return r.ended && !r.cancelled && !r.withdrawn &&
             (r.error == errc::success || r.error == errc::truncated);
    };
    for (std::uint32_t g = 0; g < p_.groups.size(); ++g)
      for (std::uint32_t to = 0; to < p_.groups[g].members.size(); ++to) {
        rank_player& r = ranks_[p_.groups[g].members[to]];
        if (!living(r) || r.hung() || !r.holds(g)) continue;
        std::vector<std::int64_t> open(p_.groups[g].members.size(), 0);
        for (std::uint32_t from = 0; from < open.size(); ++from)
          if (t_.alive(p_.groups[g].members[from]))
            open[from] = std::count_if(t_.seen[g].sends[from].begin(), t_.seen[g].sends[from].end(),
                                       [&](const sent& s) { return s.to == to; });
        for (const received& x : t_.seen[g].receives[to])
          if (taken(x)) --open[static_cast<std::size_t>(x.source)];
        for (std::uint32_t from = 0; from < open.size(); ++from)
          for (; open[from] > 0; --open[from]) r.receive_for_knot(g, static_cast<std::int32_t>(from));
      }
    settle();
  }

  /// Of every pair: all that was charged is out of the way, and its sender knows what it was told.
  void compare_books() {
    const std::uint64_t budget = p_.settings.unexpected_budget;
    for (rank_player& from : ranks_)
      for (rank_player& to : ranks_) {
        if (&from == &to) continue;
        const auto& sender = from.context().engine().meet(peer{index(to)}).outgoing;
        const auto& receiver = to.context().engine().meet(peer{index(from)}).incoming;
        if (sender.released != receiver.reported || receiver.parked != 0 ||
            budget - sender.left + sender.released != receiver.released)
          t_.complain(
              index(from),
              "its books of the budget at rank {} say {} B left and {} B given back, those there {} B "
              "given back, {} B free and {} B in use",
              index(to), sender.left, sender.released, receiver.reported, receiver.released, receiver.parked);
      }
  }

  verdict conclude() {
    for (rank_player* r : present()) r->conclude();
    for (const observed& seen : t_.seen) {
      excuses excused;
      if (t_.dead())
        if (const auto victim = p_.groups[seen.group].rank_of(*t_.dead()))
          excused.victim = static_cast<std::uint32_t>(*victim);
      for (const std::uint32_t member : p_.groups[seen.group].members)
        excused.absent.push_back(ranks_[member].hung());
      const auto complaints = judge(seen, excused);
      t_.complaints.insert(t_.complaints.end(), complaints.begin(), complaints.end());
    }
    if (!t_.dead()) {
      if (t_.world.under_way() != 0) t_.complaints.push_back("the world still carries something at the end");
      if (t_.complaints.empty()) compare_books();
    }
    t_.counted.world = t_.world.counted();
    return {t_.complaints, t_.counted, fingerprint()};
  }

  std::uint64_t fingerprint() const {
    std::uint64_t hash = static_cast<std::uint64_t>(t_.world.now());
    const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
    for (const observed& seen : t_.seen)
      for (const auto& list : seen.receives)
        for (const received& x : list) {
          mix(static_cast<std::uint64_t>(x.source));
          mix(x.bytes);
          mix(static_cast<std::uint64_t>(x.error));
        }
    for (const char c : t_.counted.text()) mix(static_cast<unsigned char>(c));
    return hash;
  }

  static constexpr int most_knots = 500;  // more than any program can tie
  int untied_ = 0;
  const program& p_;
  table t_;
  plant fault_;
  bool planted_ = false;
  std::vector<std::uint64_t> known_;  ///< what each sender was told, [from * ranks + to]
  std::deque<rank_player> ranks_;
};

}  // namespace

verdict play(const program& p, plant fault) {
  return director(p, fault).run();
}

}  // namespace verbena::sim_tests
