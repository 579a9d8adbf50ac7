#include "collectives/checker.hpp"

#include "collectives/checker_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <tuple>

namespace verbena::collectives {
namespace {

using namespace checking;

constexpr std::uint32_t end_of_repetition = no_step;

/// One entry of a rank's program: a step of one repetition of one call, or that repetition's end.
struct entry {
  std::uint32_t call = 0;
  std::uint32_t turn = 0;       ///< number of the repetition over all calls
  std::uint32_t node_turn = 0;  ///< the same, counting those on the node only
  std::uint32_t progress = 0;   ///< `publish` steps of all earlier repetitions
  std::uint32_t index = 0;      ///< in the list, or end_of_repetition
};

/// A started step that may still be going on.
struct started {
  std::uint32_t turn = 0;
  std::uint32_t index = 0;
  bool complete = false;  ///< its partner has started too
  clock knowledge;        ///< what its end tells
  std::vector<cell_key> reads, writes;
};

struct half {  ///< a send, receive, put or flag that has not met its partner
  started* state = nullptr;
  clock at;
  std::uint32_t first = 0, chunks = 0;
  std::vector<value> values;
  std::vector<cell_key> targets;
};

struct traffic {  ///< of one ordered pair on one channel
  std::deque<half> sends, receives;
  std::deque<clock> flags;
};

struct gathering {
  int arrived = 0;
  clock knowledge;
};

struct member {
  std::vector<entry> program;
  std::size_t next = 0;
  clock now;
  std::list<started> in_flight;
  std::vector<clock> published;
  std::size_t gatherings = 0;           ///< arrived at so far
  bool gathered = false;                ///< arrived, and not left yet
  std::vector<std::uint32_t> begun_at;  ///< own clock at the first step of each turn
};

class run {
 public:
  run(const std::vector<checked_call>& calls, bool in_place, std::uint32_t slots)
      : calls_(calls), in_place_(in_place), slots_(slots), size_(static_cast<int>(calls.at(0).ranks.size())) {
    if (size_ > 64) throw fault{"the checker knows at most 64 ranks"};
    members_.resize(static_cast<std::size_t>(size_));
    for (int r = 0; r < size_; ++r) flatten(r);
  }

  void all() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < size_; ++r)
        while (advance(r)) moved = true;
    }
    for (int r = 0; r < size_; ++r)
      if (at(r).next < at(r).program.size())
        throw fault{fmt::format("deadlock: rank {} waits in step {}", r, at(r).program[at(r).next].index)};
    for (const auto& [pair, t] : traffic_)
      if (!t.sends.empty() || !t.receives.empty() || !t.flags.empty())
        throw fault{fmt::format("a message or flag from rank {} to rank {} has no partner", std::get<0>(pair),
                                std::get<1>(pair))};
  }

 private:
  member& at(int r) { return members_[static_cast<std::size_t>(r)]; }
  const schedule& list(int r, const entry& e) const {
    return calls_[e.call].ranks[static_cast<std::size_t>(r)];
  }

  void flatten(int r) {
    member& m = at(r);
    entry e;
    for (std::uint32_t call = 0; call < calls_.size(); ++call) {
      e.call = call;
      const schedule& s = list(r, e);
      const auto steps = static_cast<std::uint32_t>(s.steps.size());
      if (s.ahead > steps) throw fault{"more steps run ahead than there are"};
      std::uint32_t publishes = 0;
      for (std::uint32_t i = 0; i < steps; ++i) {
        const action what = s.steps[i].what;
        publishes += what == action::publish;
        if (i < s.ahead ? is_started(what) : what == action::publish && s.ahead > 0)
          throw fault{"steps that run ahead must start nothing and hold all publish steps"};
        for (std::uint32_t before : s.steps[i].after)
          if (before != no_step && before >= i) throw fault{"a step waits for itself or a later one"};
      }
      if (publishes != s.publishes || s.publishes != calls_[call].ranks[0].publishes)
        throw fault{"members publish different numbers of times"};
      const entry base = e;
      const auto add = [&](std::uint32_t repetition, std::uint32_t from, std::uint32_t to) {
        e.turn = base.turn + repetition;
        e.node_turn = base.node_turn + (s.on_node ? repetition : 0);
        e.progress = base.progress + repetition * s.publishes;
        for (e.index = from; e.index < to; ++e.index) m.program.push_back(e);
      };
      const auto repetitions = static_cast<std::uint32_t>(calls_[call].repetitions);
      add(0, 0, s.ahead);
      for (std::uint32_t repetition = 0; repetition < repetitions; ++repetition) {
        if (repetition + 1 < repetitions) add(repetition + 1, 0, s.ahead);
        add(repetition, s.ahead, steps);
        e.index = end_of_repetition;
        m.program.push_back(e);
      }
      e.turn = base.turn + repetitions;
      e.node_turn = base.node_turn + (s.on_node ? repetitions : 0);
      e.progress = base.progress + repetitions * s.publishes;
    }
    m.now.assign(static_cast<std::size_t>(size_), 0);
    m.begun_at.assign(e.turn, 0);
  }

  /// Runs the next entry of rank `r` if it can run. False: it must wait, or there is none.
  bool advance(int r) {
    member& m = at(r);
    if (m.next == m.program.size()) return false;
    const entry& e = m.program[m.next];
    const step* s = e.index == end_of_repetition ? nullptr : &list(r, e).steps[e.index];
    if (!wait_for_started(m, e, s)) return false;
    if (s == nullptr) {
      verify_result(r, e);
    } else {
      if (!ready(r, e, *s)) return false;
      const std::uint32_t now = ++m.now[static_cast<std::size_t>(r)];
      if (m.begun_at[e.turn] == 0) m.begun_at[e.turn] = now;
      perform(r, e, *s);
    }
    ++m.next;
    return true;
  }

  /// Ends the started steps that `s` names (null: all of the repetition). False: one is not over yet.
  bool wait_for_started(member& m, const entry& e, const step* s) {
    const auto named = [&](const started& one) {
      return one.turn == e.turn &&
             (s == nullptr || std::find(s->after.begin(), s->after.end(), one.index) != s->after.end());
    };
    for (const started& one : m.in_flight)
      if (named(one) && !one.complete) return false;
    for (const started& one : m.in_flight)
      if (named(one)) join(m.now, one.knowledge);
    m.in_flight.remove_if(named);
    return true;
  }

  bool ready(int r, const entry& e, const step& s) {
    const bool meets_peer = is_started(s.what) || s.what == action::await || s.what == action::wait_flag;
    if (meets_peer && (s.peer < 0 || s.peer >= size_ || s.peer == r))
      throw fault{fmt::format("rank {} has rank {} for a peer", r, s.peer)};
    if (s.what == action::wait_release && at(r).gatherings == 0) throw fault{"a release without an arrival"};
    if (s.what == action::await) return at(s.peer).published.size() >= e.progress + s.count;
    if (s.what == action::wait_flag) return !pair(s.peer, r, s).flags.empty();
    if (s.what == action::wait_release) return gatherings_.at(at(r).gatherings - 1).arrived == size_;
    return true;
  }

  traffic& pair(int from, int to, const step& s) { return traffic_[{from, to, s.channel}]; }

  /// The cells of a piece of step `s`, seen from rank `r`; `owner`: whose private memory.
  std::vector<cell_key> cells(int owner, const entry& e, const step& s, const piece& p) const {
    std::vector<cell_key> result;
    if (p.where == place::none) return result;
    cell_key key{owner, p.where, e.turn, 0};
    const schedule& mine = list(owner, e);
    if (p.where == place::scratch) {
      key.instance = e.call;
      if (p.at + s.chunks > mine.scratch_chunks) throw fault{"a step leaves the scratch"};
    } else if (mine.blocks) {
      if (p.at + s.chunks > blocks_of(owner, e, p.where)) throw fault{"a step leaves the blocks"};
    } else {
      if (p.at != s.first) throw fault{"data and position differ"};
      if (s.first + s.chunks > mine.chunks) throw fault{"a step leaves the segment"};
      if (blocks_of(owner, e, p.where) == 0)
        throw fault{"a step touches a buffer that its rank does not have"};
    }
    if (p.where == place::node) {
      key.owner = p.member;
      key.instance = e.node_turn % slots_;
    }
    for (std::uint32_t i = 0; i < s.chunks; ++i) {
      key.at = p.at + i;
      result.push_back(in_place_ && key.where == place::input ? in_place_of(key, e) : key);
    }
    return result;
  }

  /// How many blocks a rank's buffer holds: none, one (or one vector), one for each member.
  std::uint32_t blocks_of(int owner, const entry& e, place where) const {
    const auto all = static_cast<std::uint32_t>(size_);
    const checked_call& call = calls_[e.call];
    const bool root = owner == call.root;
    const bool input = where == place::input;
    if (where == place::node) return all;
    switch (call.what) {
      case purpose::broadcast:
        return root == input ? 1 : 0;
      case purpose::reduce:
        return root || input ? 1 : 0;
      case purpose::gather:
        return input ? 1 : root ? all : 0;
      case purpose::scatter:
        return !input ? 1 : root ? all : 0;
      case purpose::allgather:
        return input ? 1 : all;
      case purpose::alltoall:
        return all;
      case purpose::allreduce:
      case purpose::barrier:
        break;
    }
    return 1;
  }

  /// The cell of the output that an input's cell is, in place. Where they differ in size: the own block among
  /// all.
  cell_key in_place_of(cell_key key, const entry& e) const {
    const checked_call& call = calls_[e.call];
    switch (call.what) {
      case purpose::broadcast:
        return key;  // nobody has both
      case purpose::reduce:
        if (key.owner != call.root) return key;
        break;
      case purpose::gather:
        if (key.owner != call.root) return key;
        [[fallthrough]];
      case purpose::allgather:
        key.at = static_cast<std::uint32_t>(key.owner);
        break;
      case purpose::scatter:
        if (key.owner != call.root || key.at != static_cast<std::uint32_t>(call.root)) return key;
        key.at = 0;
        break;
      case purpose::alltoall:
      case purpose::allreduce:
      case purpose::barrier:
        break;
    }
    key.where = place::output;
    return key;
  }

  /// What a cell holds before anything is written.
  value operand(const cell_key& key, const entry& e) {
    if (key.where == place::input) return values_.leaf(key.owner, key.at, e.turn);
    if (!in_place_ || key.where != place::output) return 0;
    for (std::uint32_t at = 0; at < blocks_of(key.owner, e, place::input) || at < list(key.owner, e).chunks;
         ++at) {
      const cell_key source{key.owner, place::input, key.instance, at};
      if (blocks_of(key.owner, e, place::input) > 0 && in_place_of(source, e) == key)
        return values_.leaf(key.owner, at, e.turn);
      if (calls_[e.call].what == purpose::gather || calls_[e.call].what == purpose::allgather)
        break;  // one block
    }
    return 0;
  }

  value load(int r, const entry& e, const cell_key& key) {
    const value v = memory_.read(key, r, at(r).now);
    return v == 0 ? operand(key, e) : v;
  }

  std::vector<value> load(int r, const entry& e, const std::vector<cell_key>& keys) {
    std::vector<value> result;
    for (const cell_key& key : keys) result.push_back(load(r, e, key));
    return result;
  }

  /// No step may touch what a started one may still be reading or writing.
  void check_in_flight(int r, const std::vector<cell_key>& reads, const std::vector<cell_key>& writes) {
    const auto meet = [&](const std::vector<cell_key>& a, const std::vector<cell_key>& b) {
      for (const cell_key& key : a)
        if (std::find(b.begin(), b.end(), key) != b.end())
          throw fault{
              fmt::format("rank {} has a step going on in {} that another step touches", r, name(key))};
    };
    for (const started& one : at(r).in_flight) {
      meet(one.writes, reads);
      meet(one.writes, writes);
      meet(one.reads, writes);
    }
  }

  void perform(int r, const entry& e, const step& s) {
    member& m = at(r);
    const bool put = s.what == action::put_with_flag;
    std::vector<cell_key> reads = cells(r, e, s, s.left);
    for (const cell_key& key : cells(r, e, s, s.right)) reads.push_back(key);
    const std::vector<cell_key> to = cells(put ? s.peer : r, e, s, s.to);
    if (s.to.where == place::input) throw fault{"a step writes its input"};
    if ((s.what == action::send || s.what == action::receive) && list(r, e).blocks && s.chunks > 1 &&
        (s.left.where != place::scratch && s.to.where != place::scratch))
      throw fault{"a message of several blocks does not lie in scratch"};
    check_in_flight(r, reads, put ? std::vector<cell_key>{} : to);
    std::vector<value> got = load(r, e, reads);

    switch (s.what) {
      case action::copy:
        store(r, to, got);
        break;
      case action::reduce:
        for (std::uint32_t i = 0; i < s.chunks; ++i) got[i] = values_.combine(got[i], got[s.chunks + i]);
        got.resize(s.chunks);
        store(r, to, got);
        break;
      case action::send:
      case action::receive:
        start_message(r, e, s, reads, to, got);
        break;
      case action::put_with_flag:
        store(r, to, got);
        m.in_flight.push_back({e.turn, e.index, true, m.now, reads, {}});
        pair(r, s.peer, s).flags.push_back(m.now);
        break;
      case action::wait_flag:
        join(m.now, pair(s.peer, r, s).flags.front());
        pair(s.peer, r, s).flags.pop_front();
        break;
      case action::publish:
        m.published.push_back(m.now);
        break;
      case action::await:
        if (e.progress + s.count > 0) join(m.now, at(s.peer).published.at(e.progress + s.count - 1));
        break;
      case action::arrive:
      case action::arrive_combine:
        arrive(r, e, s);
        break;
      case action::wait_release:
        join(m.now, gatherings_.at(m.gatherings - 1).knowledge);
        m.gathered = false;
        break;
    }
  }

  void store(int r, const std::vector<cell_key>& to, const std::vector<value>& what) {
    for (std::size_t i = 0; i < to.size(); ++i) memory_.write(to[i], r, at(r).now, what.at(i));
  }

  void start_message(int r, const entry& e, const step& s, const std::vector<cell_key>& reads,
                     const std::vector<cell_key>& to, const std::vector<value>& got) {
    member& m = at(r);
    m.in_flight.push_back({e.turn, e.index, false, {}, reads, to});
    const half one{&m.in_flight.back(), m.now, s.first, s.chunks, got, to};
    // Before the data comes, the receiver may write already: that counts from the receive's start.
    if (s.what == action::receive) store(r, to, std::vector<value>(to.size(), 0));
    traffic& t = s.what == action::send ? pair(r, s.peer, s) : pair(s.peer, r, s);
    (s.what == action::send ? t.sends : t.receives).push_back(one);
    if (t.sends.empty() || t.receives.empty()) return;
    const half& from = t.sends.front();
    const half& into = t.receives.front();
    if (from.first != into.first || from.chunks != into.chunks)
      throw fault{fmt::format("ranks {} and {} exchange different chunks", r, s.peer)};
    const int receiver = s.what == action::receive ? r : s.peer;
    for (std::size_t i = 0; i < into.targets.size(); ++i)
      memory_.write(into.targets[i], receiver, into.at, from.values.at(i));
    // A send may end before its receive starts (eager), so its end tells nothing; it is not relied on to.
    from.state->complete = into.state->complete = true;
    into.state->knowledge = from.at;
    t.sends.pop_front();
    t.receives.pop_front();
  }

  void arrive(int r, const entry& e, const step& s) {
    member& m = at(r);
    m.gathered = true;
    if (m.gatherings == gatherings_.size()) gatherings_.push_back({0, clock(m.now.size(), 0)});
    gathering& g = gatherings_[m.gatherings++];
    join(g.knowledge, m.now);
    if (++g.arrived < size_) return;
    if (s.what == action::arrive_combine) combine(r, e, s, g);
  }

  /// Whoever comes last does this, knowing what all knew on arrival; who it is makes no other difference.
  void combine(int r, const entry& e, const step& s, gathering& g) {
    join(at(r).now, g.knowledge);
    const std::vector<cell_key> to = cells(r, e, s, node_piece(0, s));
    for (int other = 1; other < size_; ++other) {
      std::vector<value> left = load(r, e, to);
      const std::vector<value> right = load(r, e, cells(r, e, s, node_piece(other, s)));
      for (std::size_t i = 0; i < left.size(); ++i) left[i] = values_.combine(left[i], right[i]);
      store(r, to, left);
    }
    g.knowledge = at(r).now;
  }
  static piece node_piece(int member, const step& s) { return {place::node, member, s.first}; }

  void verify_result(int r, const entry& e) {
    const checked_call& call = calls_[e.call];
    // There is one counter for all gatherings: nobody may come to the next one before this one is complete.
    if (at(r).gathered) throw fault{fmt::format("rank {} goes on without leaving the gathering", r)};
    if (call.what == purpose::barrier) {
      for (int other = 0; other < size_; ++other) {
        const std::uint32_t begun = at(other).begun_at[e.turn];
        if (begun == 0 || at(r).now[static_cast<std::size_t>(other)] < begun) {
          if (size_ > 1)
            throw fault{fmt::format("rank {} leaves the barrier before rank {} is in", r, other)};
        }
      }
      return;
    }
    if (call.what == purpose::allreduce || (call.what == purpose::reduce && r == call.root))
      for (std::uint32_t chunk = 0; chunk < list(r, e).chunks; ++chunk) verify_reduced(r, e, chunk);
    if (call.what != purpose::allreduce && call.what != purpose::reduce) verify_moved(r, e);
  }

  value result_at(int r, const entry& e, std::uint32_t chunk) {
    const cell_key key{r, place::output, e.turn, chunk};
    const value v = memory_.look(key);
    return v == 0 ? operand(key, e) : v;
  }

  void verify_reduced(int r, const entry& e, std::uint32_t chunk) {
    const std::uint64_t everybody = size_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size_) - 1;
    const value v = result_at(r, e, chunk);
    if (v == 0) throw fault{fmt::format("rank {} has no result in chunk {}", r, chunk)};
    const auto& about = values_.about(v);
    if (about.operands != everybody || about.chunk != chunk || about.turn != e.turn)
      throw fault{fmt::format("rank {} has a wrong result in chunk {}", r, chunk)};
    if (list(r, e).rank_order && !about.rank_order)
      throw fault{fmt::format("rank {} does not keep rank order in chunk {}", r, chunk)};
    const auto [first, fresh] = results_.try_emplace({e.turn, chunk}, v);
    if (!fresh && first->second != v)
      throw fault{fmt::format("rank {} computes chunk {} otherwise than other ranks", r, chunk)};
  }

  /// Every chunk of the output must be one certain operand.
  void verify_moved(int r, const entry& e) {
    const checked_call& call = calls_[e.call];
    const bool vector = call.what == purpose::broadcast;
    std::uint32_t chunks = blocks_of(r, e, place::output);
    if (vector && chunks > 0) chunks = list(r, e).chunks;
    for (std::uint32_t at = 0; at < chunks; ++at) {
      const int from = vector || call.what == purpose::scatter ? call.root : static_cast<int>(at);
      const std::uint32_t block = vector ? at
                                  : call.what == purpose::scatter || call.what == purpose::alltoall
                                      ? static_cast<std::uint32_t>(r)
                                      : 0;
      if (result_at(r, e, at) != values_.leaf(from, block, e.turn))
        throw fault{fmt::format("rank {} does not have what belongs into chunk {}", r, at)};
    }
  }

  const std::vector<checked_call>& calls_;
  bool in_place_;
  std::uint32_t slots_;
  int size_;
  std::vector<member> members_;
  std::map<std::tuple<int, int, std::uint8_t>, traffic> traffic_;
  std::vector<gathering> gatherings_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, value> results_;
  expressions values_;
  memory memory_;
};

}  // namespace

std::string check_schedules(const std::vector<checked_call>& calls, bool in_place, std::uint32_t slots) {
  try {
    run one(calls, in_place, slots);
    one.all();
    return {};
  } catch (const fault& f) {
    return f.text;
  }
}

std::string check_algorithm(purpose what, algorithm of, int size, bool in_place, int repetitions, int root) {
  checked_call call{what, {}, repetitions, root};
  for (int r = 0; r < size; ++r) call.ranks.push_back(of(r, size, {root}));
  return check_schedules({call}, in_place);
}

}  // namespace verbena::collectives
