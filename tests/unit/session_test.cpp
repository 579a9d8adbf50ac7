// Sessions over links that lose, double, reorder and break, against a naive observer; the same observer against
// sessions that are wrong in one way; and what a peer may say that cannot be.
#include "tests/unit/session_link.hpp"

#include <catch2/catch.hpp>

using namespace verbena;
using namespace verbena::tests;
using session::agreement;
using session::verdict;

namespace {

const auto ignore_release = [](std::uint64_t) {};
const auto ignore_end = [](std::uint64_t, session::kind, errc) {};

const std::uint32_t near_the_wrap = UINT32_MAX - 40;
const trouble lossy{.loss = 150'000, .twice = 100'000, .reorder = 200'000};
const trouble lossy_and_breaking{.loss = 150'000, .twice = 100'000, .reorder = 200'000, .breaks = 4'000};
const trouble breaking{.breaks = 10'000};
const trouble breaking_with_operations{.breaks = 10'000, .one_sided = 300'000};

trouble at(trouble t, std::uint32_t start, bool one_way = false) {
  t.start = start;
  t.one_way = one_way;
  return t;
}

/// What the first of these seeds that shows something wrong shows.
template <class Session>
std::string wrong_with(std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const trouble& t : {lossy, lossy_and_breaking, breaking, breaking_with_operations}) {
      const std::string found = session_link<Session>(seed, t).play(120);
      if (!found.empty()) return found;
    }
  return {};
}

// Wrong in one way each.
struct believes_too_much : session::session {
  using session::session;
  template <class Release>
  verdict hear(std::uint32_t incarnation, session_header head, base::nanoseconds now, Release&& release) {
    head.acknowledged = sent().last_sent();
    return session::hear(incarnation, head, now, release);
  }
};
template <verdict Taken>
struct takes : session::session {
  using session::session;
  template <class Release>
  verdict hear(std::uint32_t incarnation, session_header head, base::nanoseconds now, Release&& release) {
    const verdict v = session::hear(incarnation, head, now, release);
    return v == Taken ? verdict::accepted : v;
  }
};
struct never_repeats : session::session {
  using session::session;
  bool look(base::nanoseconds) noexcept { return true; }
  template <class Release>
  verdict hear_answer(std::uint32_t incarnation, transport::session::bare_answer told, base::nanoseconds now,
                      Release&& release) {
    told.newest = told.acknowledged;
    return session::hear_answer(incarnation, told, now, release);
  }
};
struct never_answers : session::session {
  using session::session;
  bool wants_to_answer(base::nanoseconds) const noexcept { return false; }
};
struct states_one_too_many : session::session {
  using session::session;
  transport::session::resume_point propose() noexcept {
    auto point = session::propose();
    ++point.expected;
    return point;
  }
};
template <session::kind Posted, session::kind As>
struct mistakes : session::session {
  using session::session;
  std::uint64_t one_sided(transport::session::kind what, std::uint64_t cookie) {
    return session::one_sided(what == Posted ? As : what, cookie);
  }
};
struct replays_nothing : session::session {
  using session::session;
  template <class Transmit>
  std::size_t send_again(Transmit&& transmit) {
    return session::send_again([&](const transport::session::entry& e, session_header head) {
      return e.what == transport::session::kind::packet ? true : transmit(e, head);
    });
  }
};

}  // namespace

TEST_CASE("every packet arrives once and in order over links that lose, double and reorder", "[session]") {
  std::uint64_t again = 0, duplicates = 0, early = 0, refused = 0, bare = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed)
    for (const std::uint32_t start : {1U, near_the_wrap}) {
      session_link<session::session> link(seed, at(lossy, start, seed % 3 == 0));
      INFO("seed " << seed << " from " << start);
      CHECK(link.play(200) == "");
      again += link.again, duplicates += link.duplicates, early += link.early;
      refused += link.refused, bare += link.bare;
    }
  for (const std::uint64_t had : {again, duplicates, early, refused, bare}) CHECK(had > 100);
}

TEST_CASE("a connection made again takes up where the old one broke", "[session]") {
  std::uint64_t resumes = 0, unknown = 0, repeated = 0, stale = 0, again = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed)
    for (const trouble& t : {breaking, breaking_with_operations, lossy_and_breaking})
      for (const std::uint32_t start : {1U, near_the_wrap}) {
        session_link<session::session> link(seed, at(t, start, seed % 3 == 0));
        INFO("seed " << seed << " from " << start << ", lost " << t.loss << " one-sided " << t.one_sided);
        CHECK(link.play(200) == "");
        resumes += link.resumes, unknown += link.unknown, repeated += link.repeated;
        stale += link.stale, again += link.again;
      }
  for (const std::uint64_t had : {resumes, unknown, repeated, stale, again}) CHECK(had > 100);
}

TEST_CASE("a session that is wrong in one way is found out", "[session][mutants]") {
  using session::kind;
  CHECK(wrong_with<believes_too_much>(20) != "");
  CHECK(wrong_with<takes<verdict::duplicate>>(20) != "");
  CHECK(wrong_with<takes<verdict::early>>(20) != "");
  CHECK(wrong_with<takes<verdict::stale>>(20) != "");
  CHECK(wrong_with<never_repeats>(20) != "");
  CHECK(wrong_with<never_answers>(20) != "");
  CHECK(wrong_with<states_one_too_many>(20) != "");
  CHECK(wrong_with<replays_nothing>(20) != "");
  CHECK(wrong_with<mistakes<kind::put, kind::get>>(20) != "");
  CHECK(wrong_with<mistakes<kind::flag, kind::put>>(20) != "");
  CHECK(wrong_with<mistakes<kind::atomic, kind::get>>(20) != "");
  CHECK(wrong_with<mistakes<kind::put, kind::atomic>>(20) != "");
  CHECK(wrong_with<session::session>(20) == "");
}

TEST_CASE("what no peer can say is malformed, and changes nothing", "[session]") {
  session::session_options o;
  o.most_retained = o.peer_retains = 8;
  session::session s(o);
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(s.packet(i, 0).sequence == i + 1);
  CHECK(s.hear(0, {1, 6}, 0, ignore_release) == verdict::malformed);  // one more than was sent
  CHECK(s.hear(0, {1, 0x70000000}, 0, ignore_release) == verdict::malformed);
  CHECK(s.heard().expected() == 1);
  CHECK(s.hear(0, {0, 0}, 0, ignore_release) == verdict::malformed);
  CHECK(s.hear(0, {10, 0}, 0, ignore_release) == verdict::malformed);  // more than a peer may have under way
  CHECK(s.hear(0, {8, 0}, 0, ignore_release) == verdict::early);
  CHECK(s.hear(1, {1, 0}, 0, ignore_release) == verdict::stale);
  CHECK(s.hear(0, {1, 0}, 0, ignore_release) == verdict::accepted);
  CHECK(s.hear(0, {1, 3}, 0, ignore_release) == verdict::duplicate);
  CHECK(s.sent().acknowledged() == 3);
  CHECK(s.hear_answer(0, {2, 2}, 0, ignore_release) == verdict::accepted);  // overtaken: says nothing new
  CHECK(s.sent().acknowledged() == 3);
  CHECK(s.hear_answer(0, {9, 9}, 0, ignore_release) == verdict::malformed);

  o.ordered_link = true;
  session::session ordered(o);
  CHECK(ordered.hear(0, {2, 0}, 0, ignore_release) == verdict::malformed);
}

TEST_CASE("a connection is agreed upon with the right process, once, and with what is possible",
          "[session]") {
  session::session_options o;
  o.identity = 5;
  session::session one(o), two(o);
  for (std::uint64_t i = 0; i < 4; ++i) two.hear(0, one.packet(i, 0), 0, ignore_release);
  one.break_off();
  CHECK_FALSE(one.may_post());
  session::resume_point answer;
  session::resume_point proposal = one.propose();
  CHECK(proposal == session::resume_point{1, 1, 5, 1, 4});
  auto accept = [&](session::resume_point p) { return two.accept(p, answer, 0, ignore_release, ignore_end); };

  auto wrong = proposal;
  wrong.session = 6;
  CHECK(accept(wrong) == agreement::other_peer);
  wrong = proposal;
  wrong.sent = 3;  // it has sent four, we have them
  CHECK(accept(wrong) == agreement::impossible);
  wrong = proposal;
  wrong.expected = 2;  // we have sent nothing
  CHECK(accept(wrong) == agreement::impossible);

  CHECK(accept(proposal) == agreement::agreed);
  CHECK(answer == session::resume_point{1, 1, 5, 5, UINT32_MAX});
  CHECK(accept(proposal) == agreement::repeated);
  std::size_t released = 0;
  CHECK(one.agree(
            answer, 0, [&](std::uint64_t) { ++released; }, ignore_end) == agreement::agreed);
  CHECK(released == 4);
  CHECK(one.may_post());
  CHECK(one.agree(answer, 0, ignore_release, ignore_end) == agreement::outdated);
  two.break_off();
  CHECK(accept(proposal) == agreement::outdated);  // that connection has been and gone
}

TEST_CASE("a quiet side answers after a number of packets or a time, and only then", "[session]") {
  session::session_options o;
  o.answers = {3, 1000};
  session::session s(o);
  CHECK(s.due() == base::never);
  s.hear(0, {1, 0}, 50, ignore_release);
  CHECK(s.due() == 1050);
  CHECK_FALSE(s.wants_to_answer(1049));
  CHECK(s.wants_to_answer(1050));
  CHECK(s.packet(1, 60).acknowledged == 1);  // rides
  CHECK(s.due() == base::never);
  for (std::uint32_t n = 2; n < 5; ++n) {
    CHECK_FALSE(s.wants_to_answer(70));
    s.hear(0, {n, 1}, 70, ignore_release);
  }
  CHECK(s.wants_to_answer(70));
  session::bare_answer told = s.answer();
  CHECK(told.acknowledged == 4);
  CHECK(told.newest == 4);
  CHECK_FALSE(s.wants_to_answer(1'000'000));

  s.hear(0, {7, 1}, 80, ignore_release);  // 5 and 6 are missing
  CHECK(s.wants_to_answer(80));
  told = s.answer();
  CHECK(told.acknowledged == 4);
  CHECK(told.newest == 7);
}

TEST_CASE("numbers pass from the last to 1, and 0 is none", "[session]") {
  session::session_options o;
  session::session one(o), two(o);
  one.start_at(UINT32_MAX, 1);
  two.start_at(1, UINT32_MAX);
  std::vector<std::uint64_t> back;
  const auto keep = [&](std::uint64_t cookie) { back.push_back(cookie); };
  for (std::uint64_t i = 0; i < 3; ++i) {
    const session_header head = one.packet(i, 0);
    CHECK(head.sequence == (i == 0 ? UINT32_MAX : i));
    CHECK(two.hear(0, head, 0, ignore_release) == verdict::accepted);
    CHECK(one.hear_answer(0, two.answer(), 0, keep) == verdict::accepted);
    CHECK(back.size() == i + 1);
  }
  CHECK(one.hear_answer(0, {0, 0}, 0, keep) == verdict::accepted);  // of the number before 1: an old one
  CHECK(one.sent().acknowledged() == 2);
}

TEST_CASE("a peer that never answers is given up after so many tries", "[session]") {
  session::session_options o;
  o.repeats = {1000, 2, 5};
  session::session s(o);
  s.packet(7, 0);
  base::nanoseconds now = 0;
  std::vector<base::nanoseconds> waits;
  std::size_t copies = 0;
  for (bool going = true; going;) {
    waits.push_back(s.due() - now);
    now = s.due();
    going = s.look(now);
    copies += s.send_again([&](const session::entry& e, session_header head) {
      CHECK(e.cookie == 7);
      CHECK(head.sequence == 1);
      return true;
    });
  }
  CHECK(waits == std::vector<base::nanoseconds>{1000, 2000, 4000, 4000, 4000, 4000});
  CHECK(copies == 5);
  std::size_t left = 0;
  s.abandon([&](const session::entry& e) { left += e.cookie; });
  CHECK(left == 7);
  CHECK_FALSE(s.may_post());
}

TEST_CASE("headers and resume points are bytes that decode exactly if they are whole", "[session]") {
  std::array<std::byte, 64> bytes{};
  CHECK(session::put(bytes.data(), session_header{0x01020304, 0xfffffffe}) == bytes.data() + 8);
  CHECK(bytes[0] == std::byte{4});
  CHECK(bytes[3] == std::byte{1});
  CHECK(bytes[7] == std::byte{0xff});
  std::span<const std::byte> left(bytes.data(), 7);
  CHECK_FALSE(session::take(left));
  CHECK(left.size() == 7);
  left = {bytes.data(), 9};
  CHECK(session::take(left)->sequence == 0x01020304);
  CHECK(left.size() == 1);

  CHECK(session::put(bytes.data(), session::bare_answer{5, 9}) == bytes.data() + session::bare_answer_bytes);
  left = {bytes.data(), session::bare_answer_bytes - 1};
  CHECK_FALSE(session::take_answer(left));
  left = {bytes.data(), session::bare_answer_bytes};
  const auto told = session::take_answer(left);
  REQUIRE(told);
  CHECK(told->acknowledged == 5);
  CHECK(told->newest == 9);
  CHECK(left.empty());
  session::put(bytes.data(), session_header{1, 5});
  left = {bytes.data(), session::bare_answer_bytes};
  CHECK_FALSE(session::take_answer(left));  // a packet

  session::resume_point point{session::resume_point::current_version, 3, 9, 4, 2};
  session::put(bytes.data(), point);
  for (std::size_t size = 0; size < sizeof point; ++size) {
    left = {bytes.data(), size};
    CHECK_FALSE(session::take_resume_point(left));
  }
  left = {bytes.data(), sizeof point};
  CHECK(session::take_resume_point(left) == point);
  for (const auto& wrong : {session::resume_point{2, 3, 9, 4, 2}, session::resume_point{1, 0, 9, 4, 2}}) {
    session::put(bytes.data(), wrong);
    left = {bytes.data(), sizeof wrong};
    CHECK_FALSE(session::take_resume_point(left));
    CHECK(left.size() == sizeof wrong);
  }
}
