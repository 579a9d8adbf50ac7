// Everything in a program has a moment on one time line, and each rank's list is what concerns it, in that order. A
// receive stands near its send, but may come before other calls of its rank that others wait for: such knots are the
// player's to untie. What all members of a communicator call, they call in the same order.
#include "tests/sim/program.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace verbena::sim_tests {
namespace {

constexpr std::uint64_t end_of_time = 1'000'000;

struct life {
  std::uint64_t from = 0, to = end_of_time;
};

class writer {
 public:
  writer(program& p, random_source& random) : p_(p), random_(random), lists_(p.world.size) {}

  void write() {
    make_first_groups();
    for (std::uint32_t i = random_.below(4); i > 0; --i) add_making(moment({0, end_of_time * 9 / 10}));
    const std::uint32_t tags = random_.between(1, 4);
    for (std::uint32_t i = random_.between(5, 80); i > 0; --i) add_message(tags);
    for (std::uint32_t i = random_.below(6); i > 0; --i) add_collective();
    for (std::uint32_t i = random_.below(4); i > 0; --i) add_window();
    for (std::uint32_t i = random_.below(p_.world.size * 12); i > 0; --i) add_look_at_requests();
    p_.of.resize(lists_.size());
    for (std::size_t r = 0; r < lists_.size(); ++r) {
      std::stable_sort(lists_[r].begin(), lists_[r].end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (auto& [when, what] : lists_[r]) p_.of[r].push_back(what);
    }
  }

 private:
  void enter(std::uint64_t when, std::uint32_t job_rank, const action& what) {
    lists_[job_rank].emplace_back(when, what);
  }
  void enter_at(std::uint64_t when, std::uint32_t on, std::int32_t who, const action& what) {
    enter(when, p_.groups[on].members[static_cast<std::size_t>(who)], what);
  }
  void enter_everywhere(std::uint64_t when, std::uint32_t on, const action& what) {
    for (const std::uint32_t member : p_.groups[on].members) enter(when, member, what);
  }
  bool flip(std::uint32_t one_in = 2) { return chance(random_, one_in); }
  /// Strictly within, and never the same one twice: calls of several members have one order.
  std::uint64_t moment(const life& in) {
    const auto width = static_cast<std::uint32_t>(in.to > in.from + 2 ? in.to - in.from - 1 : 1);
    return (in.from + 1 + random_.below(width)) << 20 | ++serial_;
  }
  static std::uint64_t plain(std::uint64_t when) { return when >> 20; }
  std::int32_t member(std::uint32_t on) {
    return static_cast<std::int32_t>(random_.below(static_cast<std::uint32_t>(p_.groups[on].members.size())));
  }
  std::uint32_t some_group() {  // the world most often, those of one rank rarely
    const std::uint32_t chosen = flip(3) ? 0 : random_.below(static_cast<std::uint32_t>(p_.groups.size()));
    return p_.groups[chosen].members.size() > 1 || flip(6) ? chosen : 0;
  }

  void make_first_groups() {
    p_.groups.emplace_back().members.resize(p_.world.size);
    std::iota(p_.groups[0].members.begin(), p_.groups[0].members.end(), 0U);
    for (std::uint32_t r = 0; r < p_.world.size; ++r) p_.groups.push_back({{r}, false});
    lives_.resize(p_.groups.size());
  }

  /// A making at `when`, of a communicator that lives then; and perhaps the end of what it made, and another making
  /// right after, which finds the same context slots free.
  void add_making(std::uint64_t when) {
    std::uint32_t on = some_group();
    if (plain(when) <= lives_[on].from + 1 || plain(when) + 1 >= lives_[on].to ||
        p_.groups[on].members.size() < 2)
      on = 0;
    making m;
    m.on = on;
    m.what = one_of(random_, {call::dup, call::split, call::create});
    const auto n = p_.groups[on].members.size();
    m.made.resize(n);
    const std::size_t first_made = p_.groups.size();
    if (m.what == call::dup) {
      p_.groups.push_back({p_.groups[on].members, flip()});
      for (auto& made : m.made) made = static_cast<std::uint32_t>(first_made);
    } else if (m.what == call::split) {
      draw_split(m, n);
    } else {
      draw_lists(m, n);
    }
    lives_.resize(p_.groups.size());
    enter_everywhere(
        when, on,
        {.what = m.what, .on = on, .item = static_cast<std::uint32_t>(p_.makings.size()), .throwing = true});
    p_.makings.push_back(std::move(m));
    bool freed = false;
    for (std::size_t g = first_made; g < p_.groups.size(); ++g) {
      lives_[g].from = plain(when);
      if (flip(3)) continue;
      const std::uint64_t gone = moment({plain(when), std::min(end_of_time, plain(when) + end_of_time / 4)});
      lives_[g].to = plain(gone);
      enter_everywhere(gone, static_cast<std::uint32_t>(g),
                       {.what = call::free, .on = static_cast<std::uint32_t>(g)});
      freed = true;
    }
    if (freed && makings_left_-- > 0 && flip()) add_making(moment({lives_[first_made].to, end_of_time}));
  }

  void draw_split(making& m, std::size_t n) {
    const std::uint32_t colors = random_.between(1, 3);
    for (std::size_t r = 0; r < n; ++r) {
      m.color.push_back(static_cast<int>(random_.below(colors + 1)) - 1);
      m.key.push_back(static_cast<int>(random_.below(5)) - 2);
    }
    for (int color = 0; color < static_cast<int>(colors); ++color) {
      std::vector<std::pair<int, std::size_t>> chosen;
      for (std::size_t r = 0; r < n; ++r)
        if (m.color[r] == color) chosen.emplace_back(m.key[r], r);
      std::sort(chosen.begin(), chosen.end());
      if (!chosen.empty()) found(m, chosen);
    }
  }
  /// Up to two lists without a rank in common.
  void draw_lists(making& m, std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = n; i > 1; --i)
      std::swap(order[i - 1], order[random_.below(static_cast<std::uint32_t>(i))]);
    m.lists.resize(n);
    std::size_t at = 0;
    for (int lists = 0; lists < 2 && at < n; ++lists) {
      const std::size_t size = random_.between(1, static_cast<std::uint32_t>(n - at));
      std::vector<std::pair<int, std::size_t>> chosen;
      std::vector<int> list;
      for (std::size_t i = 0; i < size; ++i) {
        chosen.emplace_back(0, order[at + i]);
        list.push_back(static_cast<int>(order[at + i]));
      }
      for (const int r : list) m.lists[static_cast<std::size_t>(r)] = list;
      found(m, chosen);
      at += size;
    }
  }
  void found(making& m, const std::vector<std::pair<int, std::size_t>>& ranks) {
    group made{{}, flip()};
    for (const auto& one : ranks) {
      made.members.push_back(p_.groups[m.on].members[one.second]);
      m.made[one.second] = static_cast<std::uint32_t>(p_.groups.size());
    }
    p_.groups.push_back(std::move(made));
  }

  std::size_t message_size() {
    const std::size_t eager =
        p_.settings.eager_limit != 0 ? p_.settings.eager_limit : p_.world.limits.eager_bytes;
    const auto packet = static_cast<std::uint32_t>(p_.world.limits.packet_bytes);
    switch (random_.below(7)) {
      case 0:
        return random_.below(20);
      case 1:
        return random_.below(packet) + random_.below(3);
      case 2:  // around the border of eager and rendezvous
        return std::max<std::size_t>(eager + random_.below(5), 2) - 2;
      case 3:
        return packet * random_.between(1, 4) + random_.below(3) - 1;
      case 4:
        return random_.below(static_cast<std::uint32_t>(5 * eager + 10));
      case 5:
        return flip(3) ? 0 : random_.below(600);
      default:
        return random_.below(60'000);
    }
  }

  void add_message(std::uint32_t tags) {
    const std::uint32_t on = some_group();
    const bool loose = p_.groups[on].loose;
    const std::uint64_t when = moment(lives_[on]);
    const std::int32_t from = member(on), to = member(on);
    const auto label = static_cast<std::int32_t>(random_.below(tags));
    action s{.what = call::isend,
             .on = on,
             .partner = to,
             .label = label,
             .size = message_size(),
             .throwing = flip()};
    if (flip(4)) s.what = call::issend;
    if (!loose) {
      if (flip(6)) s.what = flip(3) ? call::ssend : call::send;
      if (flip(16)) s.what = call::send_init;
      if (flip(10) && from != to) return add_exchange(s, from, tags, when);
    }
    enter_at(when, on, from, s);
    if (flip(12)) return;  // nobody asks for it: the end must
    action r = receive_for(s, from);
    const life near{
        std::max(lives_[on].from, plain(when) < end_of_time / 20 ? 0 : plain(when) - end_of_time / 20),
        std::min(lives_[on].to, plain(when) + end_of_time / 20)};
    enter_at(moment(near), on, to, r);
  }

  action receive_for(const action& s, std::int32_t from) {
    action r{.what = call::irecv,
             .on = s.on,
             .partner = from,
             .label = s.label,
             .size = s.size,
             .throwing = flip()};
    if (flip(4)) r.partner = -1;
    if (flip(4)) r.label = -1;
    if (flip(5)) r.size = random_.below(static_cast<std::uint32_t>(s.size) + 1);
    if (flip(3)) r.size += random_.below(100'000);
    if (flip(6)) r.what = flip() ? call::iprobe : call::improbe;
    if (p_.groups[s.on].loose) return r;
    if (flip(6)) r.what = call::recv;
    if (flip(12)) r.what = flip() ? call::probe : call::mprobe;
    if (flip(16)) r.what = call::recv_init;
    return r;
  }

  /// Both send to each other: at least one of them in one call.
  void add_exchange(const action& s, std::int32_t from, std::uint32_t tags, std::uint64_t when) {
    action back{.what = call::isend,
                .on = s.on,
                .partner = from,
                .label = static_cast<std::int32_t>(random_.below(tags)),
                .size = message_size(),
                .throwing = flip()};
    const auto both = [&](const action& out, const action& in) {
      action a = out;
      a.what = flip() ? call::sendrecv : call::sendrecv_replace;
      a.other = flip(4) ? -1 : out.partner;
      a.other_label = flip(4) ? -1 : in.label;
      a.other_size = a.what == call::sendrecv ? in.size + random_.below(10) : out.size;
      return a;
    };
    enter_at(when, s.on, from, both(s, back));
    if (flip()) return enter_at(when, s.on, s.partner, both(back, s));
    enter_at(when, s.on, s.partner, back);
    enter_at(when + 1, s.on, s.partner, receive_for(s, from));
  }

  void add_collective() {
    collective c;
    c.on = some_group();
    c.what = static_cast<call>(static_cast<std::uint32_t>(call::barrier) + random_.below(8));
    c.as = one_of(random_, {form::blocking, form::started, form::started, form::persistent});
    if (p_.groups[c.on].loose) c.as = form::started;
    c.root = member(c.on);
    c.count = flip(8) ? 0 : random_.below(one_of<std::uint32_t>(random_, {3, 40, 600, 6000}));
    c.how = one_of(random_, {reduction::sum, reduction::max, reduction::product, reduction::bit_xor});
    c.custom = flip(4) && p_.settings.allreduce != "ring" && p_.settings.reduce != "scatter_gather";
    c.in_place = flip(3);
    c.shift = random_.below(9);
    enter_everywhere(moment(lives_[c.on]), c.on,
                     {.what = c.what,
                      .on = c.on,
                      .item = static_cast<std::uint32_t>(p_.collectives.size()),
                      .throwing = flip()});
    p_.collectives.push_back(c);
  }

  void add_window();
  void add_access(const window& w, std::uint32_t number, const life& open, std::vector<std::size_t>& used);

  void add_look_at_requests() {
    const std::uint32_t who = random_.below(p_.world.size);
    const auto what = static_cast<call>(static_cast<std::uint32_t>(call::wait) + random_.below(9));
    enter(moment({0, end_of_time}), who,
          {.what = what, .pick = random_.below(1000), .started = flip(), .throwing = flip()});
  }

  program& p_;
  random_source& random_;
  std::vector<std::vector<std::pair<std::uint64_t, action>>> lists_;
  std::vector<life> lives_;
  std::uint64_t serial_ = 0;
  int makings_left_ = 4;
};

void writer::add_window() {
  window w;
  do w.on = some_group();
  while (p_.groups[w.on].loose);
  const life whole = lives_[w.on];
  if (whole.to - whole.from < end_of_time / 50) return;
  w.slice = random_.below(one_of<std::uint32_t>(random_, {64, 2000, 30'000})) + 1;
  const auto number = static_cast<std::uint32_t>(p_.windows.size());
  const std::uint64_t opens = moment({whole.from, (whole.from + whole.to) / 2});
  const std::uint64_t closes = moment({plain(opens) + end_of_time / 200, whole.to});
  const auto n = p_.groups[w.on].members.size();
  enter_everywhere(opens, w.on, {.what = call::register_memory, .on = w.on, .item = number});
  enter_everywhere(closes, w.on,
                   {.what = call::deregister, .on = w.on, .item = number, .pick = random_.below(1000)});
  p_.windows.push_back(w);
  std::vector<std::size_t> used(n * n);
  for (std::uint32_t i = random_.below(p_.world.link_outage.until != 0 ? 100 : 20); i > 0; --i)
    add_access(w, number, {plain(opens), plain(closes)}, used);
}

/// Each put has bytes of its own, in its origin's slice.
void writer::add_access(const window& w, std::uint32_t number, const life& open,
                        std::vector<std::size_t>& used) {
  const std::int32_t origin = member(w.on), target = member(w.on);
  action a{.what = one_of(random_, {call::put, call::put, call::put_with_flag, call::get, call::fetch_add,
                                    call::compare_swap, call::flush}),
           .on = w.on,
           .partner = target,
           .item = number,
           .pick = random_.below(1000),
           .started = flip(),
           .throwing = flip()};
  if (a.what == call::put || a.what == call::put_with_flag) {
    const std::size_t n = p_.groups[w.on].members.size();
    std::size_t& at = used[static_cast<std::size_t>(origin) * n + static_cast<std::size_t>(target)];
    a.size = random_.below(static_cast<std::uint32_t>(w.slice - at) / 2 + 1);
    a.offset = w.begin(origin) + at;
    at += a.size;
  } else if (a.what == call::get) {
    a.size = random_.below(static_cast<std::uint32_t>(w.slice) + 1);
    a.offset = w.begin(origin) + random_.below(static_cast<std::uint32_t>(w.slice - a.size) + 1);
  }
  const std::uint64_t when = moment(open);
  enter_at(when, w.on, origin, a);
  if (a.what == call::put_with_flag) {
    a.what = call::wait_flag;
    a.partner = origin;
    enter_at(moment({plain(when), open.to}), w.on, target, a);
  }
}

}  // namespace

std::optional<std::int32_t> group::rank_of(std::uint32_t job_rank) const noexcept {
  const auto at = std::find(members.begin(), members.end(), job_rank);
  if (at == members.end()) return std::nullopt;
  return static_cast<std::int32_t>(at - members.begin());
}

program make_program(std::uint64_t seed) {
  random_source random(seed);
  program p;
  p.seed = seed;
  make_surroundings(p, random);
  writer(p, random).write();
  return p;
}

}  // namespace verbena::sim_tests
