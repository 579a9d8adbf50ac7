// Runs in two guests at once, with a network between them (bed.py --guests 2): verbs from machine to machine, and what
// breaks between them.
#include "pair.hpp"
#include "tests/contract/bench.hpp"
#include "transport/verbs/verbs_fabric.hpp"

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

namespace {

using namespace verbena;
using namespace verbena::contract;
using tests::expect;
using tests::line;
using tests::play;
using transport::verbs::verbs_fabric;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

void shell(const char* command) {
  expect(std::system(command) == 0, fmt::format("failed: {}", command));
}

/// This guest's end of a job of two.
struct side {
  side(line& between, int guest, transport::verbs::options how)
      : to(between), me(static_cast<std::uint32_t>(guest - 1)), other(1 - me) {
    how.any_atomics = true;
    // After a link was down, its port and address take a moment.
    for (int i = 0; i < 100; ++i) {
      fabric = std::make_unique<verbs_fabric>(peer{me}, 2, nullptr, how);
      if (has(fabric->explain(other), "not asked for")) break;
      fabric.reset();
      ::usleep(100'000);
    }
    expect(fabric != nullptr, "there is no device");
    to.say(fabric->address());
    const auto theirs = to.hear();
    expect(fabric->attach(other, theirs), fabric->explain(other));
    to.meet();  // who attached listens
  }

  void poll() {
    seen.polling = true;
    if (fabric->poll(base::steady_now(), seen) == 0) ::usleep(50);
    seen.polling = false;
  }
  template <class Condition>
  bool within(base::nanoseconds limit, Condition&& holds) {
    for (const base::nanoseconds end = base::steady_now() + limit; !holds();) {
      if (base::steady_now() > end) return false;
      poll();
    }
    return true;
  }
  post_result try_send(std::uint64_t number, std::size_t size) {
    return fabric->send(other, envelope{number, size}, size, [&](std::byte* room) {
      fill({room, size}, number);
    });
  }
  void send(std::uint64_t number, std::size_t size) {
    post_result result = post_result::again;
    expect(within(20 * base::second, [&] { return (result = try_send(number, size)) != post_result::again; }),
           "a packet is taken in the end");
    expect(result == post_result::done, fmt::format("sending: {}", fabric->last_words(other)));
  }
  /// Waits until so many packets have come, and looks at them: numbered from 0, in order, every byte right.
  void await_packets(std::size_t count) {
    expect(within(20 * base::second, [&] { return seen.packets() >= count; }),
           fmt::format("{} of {} packets came", seen.packets(), count));
    std::uint64_t number = 0;
    for (const event& e : seen.events) {
      if (e.what != event::kind::packet) continue;
      expect(e.head.first == number && e.head.second == e.bytes.size() && matches(e.bytes, number),
             fmt::format("packet {} is not what was sent", number));
      ++number;
    }
  }
  template <class Post>
  errc end_of(Post&& post) {
    tracked t(seen);
    post_result result = post_result::again;
    expect(within(20 * base::second, [&] { return (result = post(t.op)) != post_result::again; }),
           "an access is taken in the end");
    if (result == post_result::done) return errc::success;
    expect(result == post_result::pending, "an access is not possible");
    expect(within(20 * base::second, [&] { return t.ends == 1; }), "an access ends");
    return t.op.result.error;
  }
  const event* down() const {
    for (const event& e : seen.events)
      if (e.what == event::kind::down) return &e;
    return nullptr;
  }

  line& to;
  std::uint32_t me;
  peer other;
  recorder seen;  // before the fabric: it outlives it
  std::unique_ptr<verbs_fabric> fabric;
};

std::size_t size_of_packet(std::size_t number) {
  return number * 97 % 8193;
}

void traffic(line& to, int guest) {
  side s(to, guest, {});
  constexpr std::size_t packets = 300, large = (1 << 20) + 5;
  for (std::size_t i = 0; i < packets; ++i) s.send(i, size_of_packet(i));
  s.await_packets(packets);

  std::vector<std::byte> source(large), target(large), back(100'000);
  alignas(8) std::uint64_t word = 0, old = 0;
  fill(source, s.me);
  struct keys {
    remote_key target, word;
  };
  const auto exposed = s.fabric->register_memory({target.data(), target.size()});
  const auto counted = s.fabric->register_memory({reinterpret_cast<std::byte*>(&word), sizeof word});
  expect(static_cast<bool>(exposed) && static_cast<bool>(counted), "memory is registered");
  const keys there = to.exchange(keys{exposed.key(), counted.key()});
  verbs_fabric& f = *s.fabric;
  const auto put = [&](operation& o) { return f.put(s.other, {source.data(), large}, there.target, 0, o); };
  expect(s.end_of(put) == errc::success, "a put of 1 MiB succeeds");
  to.meet();
  expect(matches(target, s.other.index), "what was put is what was sent");
  const auto get = [&](operation& o) {
    return f.get(s.other, {back.data(), back.size()}, there.target, 0, o);
  };
  expect(s.end_of(get) == errc::success && matches(back, s.me), "a get brings what was put");
  to.meet();
  fill({source.data(), 4096}, 7);
  const auto flagged = [&](operation& o) {
    return f.put_with_flag(s.other, {source.data(), 4096}, there.target, 0, 99, o);
  };
  expect(s.end_of(flagged) == errc::success, "a put with a flag succeeds");
  expect(s.within(10 * base::second, [&] { return s.seen.count(event::kind::flag) == 1; }), "a flag comes");
  expect(matches(std::span(target).first(4096), 7), "what was put before the flag is there");
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto add = [&](operation& o) {
      return f.fetch_add(s.other, {reinterpret_cast<std::byte*>(&old), sizeof old}, there.word, 0, 3, o);
    };
    expect(s.end_of(add) == errc::success && old == 3 * i, "an addition finds what the one before left");
  }
  to.meet();
  expect(word == 30, "all additions were made");
  expect(s.down() == nullptr, "nobody is gone");
  to.meet();
}

/// In guest 2, while this goes on: its port goes down and comes back, so many times.
void flap(int guest, int times, int down_s) {
  if (guest == 2)
    shell(fmt::format(
              "(for i in $(seq {}); do ip link set eth0 down; sleep {}; ip link set eth0 up; sleep 2; done) "
              "</dev/null >/dev/null 2>&1 &",
              times, down_s)
              .c_str());
}

/// How often the connection was made anew.
int breaks(const side& s) {
  const std::string words = s.fabric->explain(s.other);
  const std::size_t at = words.find("made anew after ");
  return at == std::string::npos ? 0 : std::atoi(words.c_str() + at + 16);
}

/// The guests' processors are emulated, and may be slow.
transport::verbs::options patient() {
  transport::verbs::options how;
  how.link_timeout = 25 * base::second;
  return how;
}

/// Packets both ways, as fast as they are taken, from before the port goes down until after it came back for the last time.
void packets_through_flaps(line& to, int guest, int times, int down_s) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  side s(to, guest, patient());
  s.send(0, 100);
  s.await_packets(1);
  to.meet();
  flap(guest, times, down_s);
  const base::nanoseconds start = base::steady_now(), over = (times * (down_s + 2) + 1) * base::second;
  std::uint64_t number = 1;
  const auto took = [&] { return base::steady_now() - start; };
  while (took() < over || (breaks(s) < times && took() < over + 10 * base::second)) {
    for (int i = 0; i < 8; ++i) {
      const post_result result = s.try_send(number, size_of_packet(number) / 4);
      expect(result != post_result::down, s.fabric->last_words(s.other));
      if (result == post_result::again) break;
      ++number;
    }
    s.poll();
    ::usleep(1000);
  }
  post_result result = post_result::again;
  const auto send_last = [&] {
    result = s.fabric->send(s.other, envelope{number, last}, 0, [](std::byte*) {});
    return result != post_result::again;
  };
  expect(s.within(20 * base::second, send_last) && result == post_result::done,
         fmt::format("the last packet is taken, {} s after: {}; {}", took() / base::second,
                     s.fabric->explain(s.other), s.fabric->last_words(s.other)));
  const auto is_last = [&] { return !s.seen.events.empty() && s.seen.events.back().head.second == last; };
  expect(s.within(20 * base::second, is_last),
         fmt::format("the last packet comes, after {}", s.seen.packets()));
  const std::uint64_t theirs = s.seen.events.back().head.first;
  s.seen.events.pop_back();
  expect(s.seen.packets() == theirs, fmt::format("{} of {} packets came", s.seen.packets(), theirs));
  s.await_packets(theirs);
  expect(s.down() == nullptr, "nobody is gone");
  const int found = breaks(s);
  fmt::print("  {} packets out, {} in, {} breaks\n", number, theirs, found);
  expect(number > 100 && theirs > 100, "there was traffic");
  expect(found >= times && found <= 3 * times, "the connection broke, and was made anew");
  to.meet();
}

void flap_of_four_seconds(line& to, int guest) {
  packets_through_flaps(to, guest, 1, 4);
}
void three_flaps(line& to, int guest) {
  packets_through_flaps(to, guest, 3, 1);
}

/// A put and a get of 2 MiB each are under way when the port goes down, both ways.
void large_accesses(line& to, int guest) {
  constexpr std::size_t large = 2 << 20;
  side s(to, guest, patient());
  std::vector<std::byte> source(large), target(large), exposed(large), back(large);
  fill(source, s.me);
  fill(exposed, 10 + s.me);
  struct keys {
    remote_key target, exposed;
  };
  const auto in = s.fabric->register_memory({target.data(), large});
  const auto out = s.fabric->register_memory({exposed.data(), large});
  expect(static_cast<bool>(in) && static_cast<bool>(out), "memory is registered");
  const keys there = to.exchange(keys{in.key(), out.key()});
  flap(guest, 1, 3);
  const base::nanoseconds start = base::steady_now();
  do {  // until it was under way when the port went down
    tracked put(s.seen), get(s.seen);
    std::fill(back.begin(), back.end(), std::byte{0});
    const auto both_end = [&] { return put.ends + get.ends == 2; };
    expect(s.fabric->put(s.other, {source.data(), large}, there.target, 0, put.op) == post_result::pending &&
               s.fabric->get(s.other, {back.data(), large}, there.exposed, 0, get.op) == post_result::pending,
           "accesses are taken");
    expect(s.within(40 * base::second, both_end), "they end");
    expect(put.op.result.error == errc::success && get.op.result.error == errc::success, "they succeed");
    expect(matches(back, 10 + s.other.index), "what was got is what was there");
  } while (breaks(s) == 0 && base::steady_now() - start < 10 * base::second);
  s.send(0, 100);
  expect(s.within(30 * base::second, [&] { return s.seen.packets() == 1; }), "the other side's end, too");
  expect(breaks(s) >= 1, "the connection broke, and was made anew");
  to.meet();
  expect(matches(target, s.other.index), "what was put is what was sent");
  to.meet();
}

/// Additions, one at a time, and flags, several at a time, while the port goes down and comes back twice.
void flags_and_additions(line& to, int guest) {
  side s(to, guest, patient());
  alignas(8) std::uint64_t word = 0, old = 0;
  std::vector<std::byte> source(5000), target(5000);
  struct keys {
    remote_key target, word;
  };
  const auto exposed = s.fabric->register_memory({target.data(), target.size()});
  const auto counted = s.fabric->register_memory({reinterpret_cast<std::byte*>(&word), sizeof word});
  expect(static_cast<bool>(exposed) && static_cast<bool>(counted), "memory is registered");
  const keys there = to.exchange(keys{exposed.key(), counted.key()});
  struct counts {
    std::uint64_t added = 0, unknown = 0, flags = 0;
  } mine;
  std::vector<std::unique_ptr<tracked>> flags;
  std::unique_ptr<tracked> addition;
  const auto settle = [&] {
    if (addition && addition->ends == 1) {
      const errc how = addition->op.result.error;
      expect(how == errc::success || how == errc::outcome_unknown,
             "an addition ends well, or nobody knows how");
      ++(how == errc::success ? mine.added : mine.unknown);
      addition.reset();
    }
    std::erase_if(flags, [](const auto& t) {
      if (t->ends == 0) return false;
      expect(t->op.result.error == errc::success, "a flag arrives");
      return true;
    });
  };
  to.meet();
  flap(guest, 2, 3);
  const base::nanoseconds start = base::steady_now();
  for (bool more = true; more || addition || !flags.empty();) {
    const base::nanoseconds took = base::steady_now() - start;
    more = took < 11 * base::second || (breaks(s) < 2 && took < 30 * base::second);
    expect(took < 50 * base::second, "they end");
    if (more && !addition) {
      addition = std::make_unique<tracked>(s.seen);
      const post_result result = s.fabric->fetch_add(
          s.other, {reinterpret_cast<std::byte*>(&old), sizeof old}, there.word, 0, 1, addition->op);
      expect(result != post_result::down, s.fabric->last_words(s.other));
      if (result == post_result::again) addition.reset();
    }
    if (more && flags.size() < 4) {
      auto t = std::make_unique<tracked>(s.seen);
      const post_result result = s.fabric->put_with_flag(s.other, {source.data(), source.size()},
                                                         there.target, 0, mine.flags, t->op);
      expect(result != post_result::down, s.fabric->last_words(s.other));
      if (result == post_result::pending) {
        flags.push_back(std::move(t));
        ++mine.flags;
      }
    }
    s.poll();
    settle();
  }
  s.send(0, 100);  // the other side ends, too
  expect(s.within(30 * base::second, [&] { return s.seen.packets() == 1; }), "the other side's end, too");
  const counts theirs = to.exchange(mine);
  fmt::print("  {} added, {} unknown, {} flags, {} breaks\n", mine.added, mine.unknown, mine.flags,
             breaks(s));
  std::uint64_t number = 0;
  for (const event& e : s.seen.events)
    if (e.what == event::kind::flag) expect(e.word == number++, "each flag comes once, in order");
  expect(number == theirs.flags, fmt::format("{} of {} flags came", number, theirs.flags));
  expect(word >= theirs.added && word <= theirs.added + theirs.unknown,
         fmt::format("{} additions found, {} made, {} perhaps", word, theirs.added, theirs.unknown));
  expect(breaks(s) >= 2, "the connection broke, and was made anew");
  expect(mine.unknown >= 1 && mine.unknown <= static_cast<std::uint64_t>(breaks(s)),
         "of what was under way nobody knows");
  expect(mine.added > 10 && mine.flags > 10, "there was traffic");
  to.meet();
}

/// The port of guest 2 stays down for longer than the link timeout, under traffic.
void too_long(line& to, int guest) {
  transport::verbs::options how;
  how.link_timeout = 4 * base::second;
  side s(to, guest, how);
  s.send(0, 100);
  s.await_packets(1);
  to.meet();
  const base::nanoseconds start = base::steady_now();
  flap(guest, 1, 8);
  s.within(20 * base::second, [&] { return s.down() != nullptr || (s.try_send(1, 10), false); });
  const base::nanoseconds took = base::steady_now() - start;
  const std::string words = s.fabric->last_words(s.other);
  expect(s.down() != nullptr, "the end of the link is noticed");
  fmt::print("  after {} ms: {}\n", took / base::millisecond, words);
  expect(took >= how.link_timeout - 500 * base::millisecond && took < 10 * base::second,
         "in time, and not before");
  expect(s.down()->why == (guest == 1 ? errc::peer_failed : errc::link_down), "each knows what it can know");
  if (guest == 1) {
    for (const std::string_view part :
         {"is that process alive", "are both links up", "No new connection within 4 s"})
      expect(has(words, part), fmt::format("says: {}", part));
  } else {
    expect(has(words, "The port here is DOWN"), "says where it is down");
    expect(has(words, "No new connection within 4 s") || has(words, "no link for 4 s"), "says for how long");
  }
  for (int i = 0;
       i < 150 && guest == 2 && std::system("grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state") != 0;
       ++i)
    ::usleep(100'000);
  to.meet();
}

/// The port of guest 2 goes down and does not come back. Both sides only wait, asleep but for what the helper says.
void no_link(line& to, int guest) {
  std::atomic<int> rings{0};
  transport::verbs::options how;
  how.link_timeout = 2 * base::second;
  how.wake = [&] { ++rings; };
  side s(to, guest, how);
  s.send(0, 100);
  s.await_packets(1);
  to.meet();
  // What is under way when a port goes down fails at once; here nothing is.
  s.within(base::second, [] { return false; });
  to.meet();
  if (guest == 2) shell("ip link set eth0 down");
  const base::nanoseconds start = base::steady_now();
  while (s.down() == nullptr && base::steady_now() - start < 15 * base::second) {
    const int before = rings;
    if (s.fabric->arm())
      for (int i = 0; i < 5000 && rings == before; ++i) ::usleep(1000);
    s.poll();
  }
  const base::nanoseconds took = base::steady_now() - start;
  const std::string words = s.fabric->last_words(s.other);
  if (guest == 2) shell("ip link set eth0 up");
  expect(s.down() != nullptr, "the end of the link is noticed");
  fmt::print("  after {} ms: {}\n", took / base::millisecond, words);
  expect(took < 12 * base::second, "in time");
  const std::string_view other_rank = guest == 1 ? "to rank 1" : "to rank 0";
  if (guest == 1) {
    expect(s.down()->why == errc::peer_failed, "guest 1 knows that its peer is gone");
    for (const std::string_view part :
         {std::string_view("rxe0 port 1"), other_rank, std::string_view("RETRY_EXC_ERR"),
          std::string_view("are both links up"), std::string_view("The port here is ACTIVE")})
      expect(has(words, part), fmt::format("says: {}", part));
  } else {
    expect(took >= how.link_timeout, "not before its time");
    expect(s.down()->why == errc::link_down, "guest 2 knows that its link is down");
    for (const std::string_view part :
         {"rxe0 port 1", "no link for 2 s", "The port here is DOWN", "PORT_ERR"})
      expect(has(words, part), fmt::format("says: {}", part));
  }
}

/// The process in guest 2 is killed; guest 1 does what `meanwhile` says, again and again, and is told.
template <class Meanwhile>
void killed(line& to, int guest, Meanwhile&& meanwhile) {
  transport::verbs::options how;
  how.link_timeout = 4 * base::second;
  side s(to, guest, how);
  s.send(0, 100);
  s.await_packets(1);
  to.meet();
  if (guest == 2) ::kill(::getpid(), SIGKILL);
  const base::nanoseconds start = base::steady_now();
  s.within(15 * base::second, [&] { return s.down() != nullptr || (meanwhile(s), false); });
  const base::nanoseconds took = base::steady_now() - start;
  const std::string words = s.fabric->last_words(s.other);
  expect(s.down() != nullptr, "the death is noticed");
  fmt::print("  after {} ms: {}\n", took / base::millisecond, words);
  expect(took < 8 * base::second, "in time");
  expect(s.down()->why == errc::peer_failed, "it is called a failure of the peer");
  expect(has(words, "RETRY_EXC_ERR") && has(words, "is that process alive"), "the words say so");
}

/// Its last packets may all have been answered before it died: then there is no more room for any, and nothing fails.
void killed_while_sending(line& to, int guest) {
  killed(to, guest, [](side& s) { s.try_send(1, 10); });
}

void killed_while_waiting(line& to, int guest) {
  killed(to, guest, [](side&) {});
}

}  // namespace

TEST_CASE("packets and puts arrive from machine to machine", "[verbs]") {
  play(traffic);
}

TEST_CASE("a port that comes back costs no packet, and doubles none", "[verbs][faults]") {
  play(flap_of_four_seconds);
}

TEST_CASE("a port that flaps three times in a row costs no packet either", "[verbs][faults]") {
  play(three_flaps);
}

TEST_CASE("a put and a get go on when the port comes back", "[verbs][faults]") {
  play(large_accesses);
}

TEST_CASE("a flag arrives once, and of an addition that was under way nobody knows", "[verbs][faults]") {
  play(flags_and_additions);
}

TEST_CASE("a port that comes back too late ends the link under traffic", "[verbs][faults]") {
  play(too_long);
}

TEST_CASE("a link that is down for too long is given up, and each side says what it knows",
          "[verbs][faults]") {
  play(no_link);
}

TEST_CASE("a peer that is killed on another machine is gone within seconds", "[verbs][faults]") {
  play(killed_while_sending, 2);
  play(killed_while_waiting, 2);
}
