// How two ranks agree about a new connection: the pure machine of both, between them letters that are lost, doubled, late
// and out of order, and connections that break at any time. From seeds; a failure names its own.
#include "transport/verbs/mending.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

using namespace verbena;
using namespace verbena::transport::verbs;
using base::millisecond;
using base::nanoseconds;
using stage = mending::stage;

namespace {

constexpr std::uint32_t lease = 8;
constexpr nanoseconds step = 5 * millisecond, timeout = 100 * base::second;

struct packet {
  std::uint32_t start;  ///< of the connection
  std::uint32_t sequence;
};

struct side {
  mending mends;
  std::uint32_t start = 0;         ///< names its half of the connection
  std::uint32_t connected_to = 0;  ///< the start of the half it hears; 0: it hears none
  std::uint32_t lost = 0;          ///< of halves up to this one nothing arrives any more
  nanoseconds drained_at = 0;
  nanoseconds stalls_until = 0;  ///< what is on the way waits
  nanoseconds notices_at = base::never;
  std::uint32_t sent = 0, given_back = 0, posted = 0, arrived = 0;
  std::deque<packet> on_the_way;
  bool given_up = false;
  int breaks = 0, mended = 0;

  bool up() const { return mends.is() == stage::up && !given_up; }
};

struct on_the_way {
  letter text;
  std::size_t to;
  nanoseconds at;
};

/// Both sides, and what lies between them.
class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed) {
    for (side& s : sides) s.start = ++starts_;
    sides[0].connected_to = sides[1].start;
    sides[1].connected_to = sides[0].start;
    // Counts wrap, and so do incarnations.
    if (chance(30)) {
      const auto from = static_cast<std::uint32_t>(-static_cast<int>(below(20)) - 1);
      for (side& s : sides) {
        s.sent = s.given_back = s.posted = s.arrived = from;
        s.mends.adopt(from);
      }
    }
  }

  std::uint32_t below(std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
  }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

  void cut() {
    for (side& s : sides) s.lost = s.start;
    // Whoever has nothing under way may never notice by itself.
    for (side& s : sides)
      if (chance(60)) s.notices_at = now + below(2000) * millisecond;
  }

  void tick() {
    now += step;
    for (std::size_t i = 0; i < letters_.size();) {
      if (letters_[i].at > now) {
        ++i;
        continue;
      }
      const on_the_way l = letters_[i];
      letters_[i] = letters_.back();
      letters_.pop_back();
      hear(l.to, l.text);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      carry(i);
      move(i);
    }
  }

  bool is_over() const {
    return std::all_of(sides.begin(), sides.end(),
                       [](const side& s) { return s.up() && s.posted == s.sent; }) &&
           sides[0].sent == sides[1].arrived && sides[1].sent == sides[0].arrived;
  }

  std::array<side, 2> sides;
  nanoseconds now = base::second;
  std::uint32_t lost_letters = 30, doubled_letters = 20, failed_tries = 20, stalls = 2;
  nanoseconds longest_way = 300 * millisecond;
  bool sends = true;
  const char* wrong = nullptr;
  int letters = 0;

 private:
  void fail(const char* why) {
    if (wrong == nullptr) wrong = why;
  }

  /// Packets of side `from`, as far as they come now.
  void carry(std::size_t from) {
    side &s = sides[from], &r = sides[1 - from];
    if (chance(stalls)) s.stalls_until = now + below(400) * millisecond;
    if (now < s.stalls_until) return;
    for (std::uint32_t count = below(4); count > 0 && !s.on_the_way.empty(); --count) {
      const packet p = s.on_the_way.front();
      s.on_the_way.pop_front();
      if (p.start <= s.lost || r.connected_to != p.start) {  // the device tries for a while, and fails
        if (s.start == p.start && s.up()) {
          s.lost = s.start;
          s.notices_at = std::min(s.notices_at, now + 500 * millisecond);
        }
        continue;
      }
      if (r.mends.is() != stage::up) act(1 - from, r.mends.carried());
      if (r.mends.is() != stage::up) fail("something came while nobody listened");
      if (p.sequence != r.arrived + 1) fail("a packet came twice, or one did not come");
      r.arrived = p.sequence;
      if (chance(50)) s.given_back = r.arrived;
    }
  }

  void move(std::size_t i) {
    side& s = sides[i];
    if (s.given_up) return;
    if (s.up() && now >= s.notices_at) break_off(s);
    if (s.mends.is() == stage::draining && now >= s.drained_at) {
      if (s.connected_to != 0) fail("it was not stopped");
      s.start = ++starts_;
      act(i, s.mends.drained(now));
    }
    for (int deeds = 0; deeds < 3; ++deeds) act(i, s.mends.look(now, !chance(5)));
    if (!s.up()) return;
    if (sends && s.posted == s.sent && s.sent - s.given_back < lease && chance(50)) ++s.sent;
    for (; s.posted != s.sent && !chance(20); ++s.posted) s.on_the_way.push_back({s.start, s.posted + 1});
  }

  void stop(side& s) {
    s.connected_to = 0;
    if (chance(50)) s.lost = s.start;  // else what has left may still come
    s.drained_at = now + below(200) * millisecond;
    s.notices_at = base::never;
  }
  void break_off(side& s) {
    ++s.breaks;
    s.mends.break_off(now, now, timeout);
    stop(s);
  }

  void hear(std::size_t i, const letter& text) {
    side& s = sides[i];
    if (s.given_up) return;
    deed what = s.mends.hear(text, now);
    if (what == deed::break_off) {
      break_off(s);
      what = s.mends.hear(text, now);
    }
    act(i, what);
  }

  void act(std::size_t i, deed what) {
    side& s = sides[i];
    switch (what) {
      case deed::nothing:
        return;
      case deed::break_off:
        return fail("to break off what is broken");
      case deed::stop:
        return stop(s);
      case deed::connect:
        return act(i, s.mends.connected(connect(s), now));
      case deed::go_on:
        return go_on(s);
      case deed::go_on_and_say_up:
        go_on(s);
        return write(i, letter_kind::up);
      case deed::say_broken:
        return write(i, letter_kind::broken);
      case deed::say_listens:
        return write(i, letter_kind::listens);
      case deed::say_up:
        return write(i, letter_kind::up);
      case deed::give_up:
      case deed::given_up:
        s.given_up = true;
        return;
    }
  }

  connecting connect(side& s) {
    const standing here{.sent = s.sent, .given_back = s.given_back, .arrived = s.arrived, .lease = lease};
    if (!fits(here, s.mends.heard())) fail("what is told does not fit");
    if (chance(failed_tries)) return chance(50) ? connecting::not_yet : connecting::later;
    s.connected_to = s.mends.heard().start;
    return connecting::yes;
  }

  void go_on(side& s) {
    ++s.mended;
    if (s.connected_to == 0 || s.connected_to != s.mends.heard().start) fail("it goes on unconnected");
    s.posted = s.mends.heard().arrived;
  }

  void write(std::size_t by, letter_kind what) {
    side& s = sides[by];
    ++letters;
    if (chance(10)) return;  // no room: it is written at the next look
    s.mends.wrote(now);
    letter text;
    text.what = what;
    text.to = text.by = 1;
    text.rank = static_cast<std::uint32_t>(by);
    text.incarnation = s.mends.incarnation();
    text.number = 1;
    text.start = s.start;
    text.arrived = s.arrived;
    text.sent = s.sent;
    for (std::uint32_t copies = chance(doubled_letters) ? 2 : 1; copies > 0; --copies)
      if (!chance(lost_letters))
        letters_.push_back({text, 1 - by,
                            now + static_cast<nanoseconds>(
                                      below(static_cast<std::uint32_t>(longest_way / millisecond) + 1)) *
                                      millisecond});
  }

  std::mt19937_64 random_;
  std::uint32_t starts_ = 0;
  std::vector<on_the_way> letters_;
};

letter written(letter_kind what, std::uint32_t incarnation) {
  letter l;
  l.what = what;
  l.incarnation = incarnation;
  return l;
}

}  // namespace

TEST_CASE("two ranks agree, whatever happens to their letters and connections", "[verbs][mending]") {
  int breaks = 0, mended = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    world w(seed);
    for (int i = 0; i < 2500; ++i) {
      if (w.chance(1)) w.cut();
      w.tick();
    }
    w.sends = false;
    int more = 0;
    while (!w.is_over() && ++more < 6000) w.tick();
    INFO("seed " << seed);
    if (w.wrong != nullptr || more == 6000) {
      FAIL((w.wrong != nullptr ? w.wrong : "they did not come to an end"));
    }
    for (const side& s : w.sides) {
      breaks += s.breaks;
      mended += s.mended;
    }
  }
  CHECK(breaks > 1500);
  CHECK(mended > 1500);
}

TEST_CASE("a new connection is there after two letters each, if none is lost", "[verbs][mending]") {
  world w(1);
  w.lost_letters = w.doubled_letters = w.failed_tries = w.stalls = 0;
  w.longest_way = 0;
  for (int i = 0; i < 100; ++i) w.tick();
  w.cut();
  for (side& s : w.sides) s.notices_at = w.now;
  w.sends = false;
  w.tick();
  CHECK_FALSE(w.is_over());
  int ticks = 0;
  while (!w.is_over() && ticks < 1000) {
    w.tick();
    ++ticks;
  }
  CHECK(w.wrong == nullptr);
  CHECK(ticks * step < 700 * millisecond);
  CHECK(w.letters <= 10);
  for (const side& s : w.sides) CHECK((s.breaks == 1 && s.mended == 1));
}

TEST_CASE("a link that nobody answers is given up in time", "[verbs][mending]") {
  mending m;
  m.break_off(20 * base::second, 18 * base::second, 10 * base::second);
  m.drained(20 * base::second);
  nanoseconds now = 20 * base::second;
  int letters = 0;
  for (deed what = deed::nothing; (what = m.look(now, true)) != deed::give_up; now += 10 * millisecond) {
    REQUIRE(now < 30 * base::second);
    if (what == deed::say_broken) {
      ++letters;
      m.wrote(now);
    }
  }
  CHECK(now == 28 * base::second);
  CHECK(letters == 80);
}

TEST_CASE("time in which a rank makes no call does not count against a link, but only for so long",
          "[verbs][mending]") {
  mending m;
  const nanoseconds start = 50 * base::second;
  m.break_off(start, start, 10 * base::second);
  m.drained(start);
  // Away for 9 of 10 seconds, and again and again.
  nanoseconds now = start;
  while (m.look(now, false) != deed::give_up) {
    now += 9 * base::second;
    if (m.look(now, false) == deed::give_up) break;
    now += base::second;
    REQUIRE(now < start + 100 * base::second);
  }
  CHECK(now > start + 10 * base::second);
  CHECK(now <= start + 20 * base::second);
}

TEST_CASE("while the peer still writes, there is a little more time", "[verbs][mending]") {
  mending m;
  const nanoseconds start = 50 * base::second;
  m.break_off(start, start, 10 * base::second);
  m.drained(start);
  for (nanoseconds now = start; now <= start + 9'900 * millisecond; now += 900 * millisecond)
    CHECK(m.look(now, false) == deed::nothing);
  CHECK(m.hear(written(letter_kind::broken, 1), start + 9'990 * millisecond) == deed::connect);
  CHECK(m.connected(connecting::not_yet, start + 9'991 * millisecond) == deed::nothing);
  CHECK(m.look(start + 10'050 * millisecond, false) == deed::nothing);
  CHECK(m.look(start + 10'200 * millisecond, false) == deed::connect);
  CHECK(m.look(start + 11'150 * millisecond, false) == deed::connect);
  CHECK(m.look(start + 11'990 * millisecond, false) == deed::give_up);
  // But not for ever.
  m.break_off(start, start, 10 * base::second);
  m.drained(start);
  nanoseconds now = start;
  for (; m.look(now, false) != deed::give_up; now += 100 * millisecond) {
    m.hear(written(letter_kind::broken, 2), now);
    m.connected(connecting::not_yet, now);
    REQUIRE(now <= start + 20 * base::second);
  }
  CHECK(now == start + 20 * base::second);
}

TEST_CASE("what cannot be connected is tried again now and then, not at each letter", "[verbs][mending]") {
  mending m;
  nanoseconds now = 50 * base::second;
  m.break_off(now, now, 10 * base::second);
  m.drained(now);
  int tries = 0;
  const auto act = [&](deed what) {
    if (what == deed::say_broken) m.wrote(now);
    if (what != deed::connect) return;
    ++tries;
    m.connected(connecting::not_yet, now);
  };
  for (int i = 0; i < 1000; ++i, now += millisecond) {
    act(m.hear(written(letter_kind::broken, 1), now));
    act(m.look(now, true));
  }
  CHECK(tries == 10);
}

TEST_CASE("what a letter tells has to fit to what was sent and has come", "[verbs][mending]") {
  const standing here{.sent = 20,
                      .given_back = 15,
                      .arrived = 7,
                      .lease = 8,
                      .flags_sent = 6,
                      .flags_given_back = 3,
                      .flags_under_way = 2};
  letter right;
  right.arrived = 17;
  right.sent = 9;
  right.flags_arrived = 5;
  const auto with = [&](std::uint32_t letter::*what, std::uint32_t value) {
    letter l = right;
    l.*what = value;
    return fits(here, l);
  };
  CHECK(fits(here, right));
  CHECK((with(&letter::arrived, 15) && with(&letter::arrived, 20)));
  CHECK_FALSE((with(&letter::arrived, 14) || with(&letter::arrived, 21)));
  CHECK((with(&letter::sent, 7) && with(&letter::sent, 15)));
  CHECK_FALSE((with(&letter::sent, 6) || with(&letter::sent, 16)));
  CHECK((with(&letter::flags_arrived, 4) && with(&letter::flags_arrived, 6)));
  CHECK_FALSE((with(&letter::flags_arrived, 3) || with(&letter::flags_arrived, 7)));
  // Room of a flag was given back, so it has arrived, although its request is not known to be over.
  standing early = here;
  early.flags_given_back = 5;
  CHECK(fits(early, right));
  right.flags_arrived = 4;
  CHECK_FALSE(fits(early, right));
}

TEST_CASE("time without the port here does not count against a broken link", "[verbs][mending]") {
  const auto given_up_at = [](nanoseconds back) {
    mending m;
    m.break_off(20 * base::second, 18 * base::second, 10 * base::second);
    m.drained(20 * base::second);
    for (nanoseconds now = 20 * base::second;; now += 10 * millisecond) {
      if (now == back) m.port_is_back(now);
      if (m.look(now, false) == deed::give_up) return now;
    }
  };
  CHECK(given_up_at(0) == 28 * base::second);
  CHECK(given_up_at(27 * base::second) == 37 * base::second);
}

TEST_CASE("connections that carry nothing end a link, however long each stalls", "[verbs][mending]") {
  const auto breaks = [](nanoseconds life, int useful_until) {
    lives link;
    nanoseconds now = base::second;
    int count = 0;
    while (count < 100 && link.ended(now)) {
      ++count;
      link.made_anew(now);
      if (count <= useful_until) link.was_of_use();
      now += life;
    }
    return count;
  };
  CHECK(breaks(base::second, 100) == 10);
  CHECK(breaks(5 * base::second, 0) == 10);
  CHECK(breaks(5 * base::second, 7) == 17);
  CHECK(breaks(5 * base::second, 100) == 100);
}
