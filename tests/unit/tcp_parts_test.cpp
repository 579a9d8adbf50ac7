// What of TCP needs no socket: frames, what ranks publish, which addresses are tried, and the proofs of a handshake.
#include "transport/tcp/address.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/mirrored_buffer.hpp"
#include "transport/tcp/wire.hpp"

#include <arpa/inet.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace verbena;
using namespace verbena::transport;
using namespace verbena::transport::tcp;

namespace {

address addr(const std::string& text, reach within = reach::global) {
  address a;
  a.family = text.find(':') == text.npos ? 4 : 6;
  a.within = within;
  REQUIRE(::inet_pton(a.family == 4 ? AF_INET : AF_INET6, text.c_str(), a.bytes.data()) == 1);
  return a;
}

std::vector<std::byte> packet(std::uint32_t sequence, std::size_t payload) {
  std::vector<std::byte> bytes(sizeof(packet_head) + payload, std::byte{7});
  const packet_head head{{static_cast<std::uint32_t>(bytes.size()), frame_kind::packet, {sequence, 3}},
                         {11, 12}};
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

reading read(std::vector<std::byte> bytes, frame& into, std::size_t& left) {
  std::span<const std::byte> rest(bytes);
  const reading what = take_frame(rest, into);
  left = rest.size();
  return what;
}

std::string texts(const std::vector<way>& ways) {
  std::string all;
  for (const way& w : ways)
    all +=
        text_of(w.to) + (w.scope != 0 ? "%" + std::to_string(w.scope) : "") + (w.later ? " later" : "") + ";";
  return all;
}

contact some_contact() {
  contact c;
  c.self[3] = std::byte{9};
  c.host[5] = std::byte{8};
  c.port = 4711;
  c.addresses = {addr("10.0.0.1"), addr("fe80::1", reach::link_local)};
  return c;
}

}  // namespace

TEST_CASE("a frame is whole, partial or malformed as soon as that can be told", "[tcp]") {
  frame f;
  std::size_t left = 0;
  std::vector<std::byte> bytes = packet(5, 100);
  REQUIRE(read(bytes, f, left) == reading::whole);
  CHECK(left == 0);
  CHECK(f.session.sequence == 5);
  CHECK(f.session.acknowledged == 3);
  CHECK(f.head == envelope{11, 12});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}, f, left) ==
          reading::partial);
  bytes.push_back(std::byte{1});
  CHECK(read(bytes, f, left) == reading::whole);
  CHECK(left == 1);

  CHECK(read(packet(5, payload_bytes), f, left) == reading::whole);
  for (const std::uint32_t wrong :
       {0U, 15U, 31U, static_cast<std::uint32_t>(longest_frame) + 1, 0xffffffffU}) {
    bytes = packet(5, 100);
    std::memcpy(bytes.data(), &wrong, sizeof wrong);
    CHECK(read(bytes, f, left) == reading::malformed);
    CHECK(read({bytes.begin(), bytes.begin() + 8}, f, left) == reading::malformed);
  }
  bytes = packet(0, 10);  // a packet without a number
  CHECK(read(bytes, f, left) == reading::malformed);
  bytes = packet(5, 0);
  bytes[4] = std::byte{};  // no kind there is
  CHECK(read(bytes, f, left) == reading::malformed);

  bytes.assign(sizeof(frame_head), {});
  for (const frame_kind kind : {frame_kind::answer, frame_kind::bye}) {
    frame_head word{sizeof(frame_head), kind, {0, 42}};
    std::memcpy(bytes.data(), &word, sizeof word);
    REQUIRE(read(bytes, f, left) == reading::whole);
    CHECK(f.kind == kind);
    CHECK(f.session.acknowledged == 42);
    word.session.sequence = 1;
    std::memcpy(bytes.data(), &word, sizeof word);
    CHECK(read(bytes, f, left) == reading::malformed);
  }
}

TEST_CASE("a contact that is cut or damaged is none, or a sane one", "[tcp]") {
  const std::vector<std::byte> whole = encode(some_contact());
  const auto read = decode_contact(whole);
  REQUIRE(read);
  CHECK(read->port == 4711);
  CHECK(read->addresses == some_contact().addresses);
  CHECK(read->self == some_contact().self);
  CHECK(read->host == some_contact().host);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(decode_contact(std::span(whole).first(size)));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto damaged = decode_contact(bytes);
    if (bit < 32) CHECK_FALSE(damaged);
    if (!damaged) continue;
    CHECK(damaged->port != 0);
    for (const address& a : damaged->addresses) CHECK(sane(a));
  }
  contact nowhere;
  nowhere.why = "no interface";
  CHECK(decode_contact(encode(nowhere))->why == "no interface");
}

TEST_CASE("ways to another host leave out loopbacks, doubles and families that are not there", "[tcp]") {
  const address mine = addr("10.0.0.1"), theirs = addr("10.0.0.2"), bridge = addr("172.17.0.1"),
                lo = addr("127.0.0.1", reach::loopback), mine6 = addr("fd00::1"), theirs6 = addr("fd00::2"),
                local6 = addr("fe80::2", reach::link_local);
  const std::vector<address> all = {lo, local6, theirs6, bridge, theirs};
  CHECK(texts(choose_ways({{mine, bridge, lo}, {}}, all, false)) == "10.0.0.2;");
  CHECK(texts(choose_ways({{mine, bridge, mine6, lo}, {2, 5}}, all, false)) ==
        "10.0.0.2;fd00::2;fe80::2%2;fe80::2%5;");
  CHECK(choose_ways({{mine6}, {}}, std::vector{theirs}, false).empty());
  CHECK(choose_ways({{bridge}, {}}, std::vector{bridge}, false).empty());
  CHECK(texts(choose_ways({{mine, lo}, {}}, std::vector{mine, lo}, true)) == "127.0.0.1;10.0.0.1 later;");
  CHECK(texts(choose_ways({{mine, lo}, {}}, std::vector{mine}, true)) == "10.0.0.1;");
  std::vector<address> many;
  for (int i = 1; i <= 60; ++i) many.push_back(addr("10.1.0." + std::to_string(i)));
  CHECK(choose_ways({{mine}, {}}, many, false).size() == most_ways);
}

TEST_CASE("this host has a loopback and a mark", "[tcp]") {
  const own_addresses found = find_addresses(true);
  REQUIRE_FALSE(found.all.empty());
  for (const address& a : found.all) CHECK((sane(a) && a.within == reach::loopback));
  const own_addresses everything = find_addresses(false);
  CHECK(everything.all.size() >= found.all.size());
  CHECK(this_host() == this_host());
  CHECK(this_host() != host_mark{});
}

TEST_CASE("what lies at the end of a mirrored buffer is in one piece", "[tcp]") {
  const mirrored_buffer ring(8192);
  REQUIRE(ring);
  std::memset(ring.at(8190), 'x', 6);
  CHECK(std::memcmp(ring.at(8192), "xxxx", 4) == 0);
  CHECK(ring.at(8192 * 5 + 3) == ring.at(3));
  CHECK(ring.next_start(0) == 0);
  CHECK(ring.next_start(1) == 8192);
  CHECK(ring.next_start(8192) == 8192);
}

namespace {

using news = handshake::news;

/// All that `from` says, to `to`, bytes changed by `spoil`. What came of it.
news pass(handshake& from, handshake& to, int spoil = -1) {
  news last = news::none;
  while (!from.to_send().empty()) {
    std::vector<std::byte> bytes(from.to_send().begin(), from.to_send().end());
    if (spoil >= 0) bytes[static_cast<std::size_t>(spoil) % bytes.size()] ^= std::byte{0x10};
    from.sent(bytes.size());
    REQUIRE(to.room().size() >= bytes.size());
    std::copy(bytes.begin(), bytes.end(), to.room().begin());
    last = to.got(bytes.size());
  }
  return last;
}

struct two_ends {
  identity one{make_secret(), "job", 0, {}}, two{one.key, "job", 1, {}};
  session::resume_point first{1, 4, 77, 10, 20}, second{1, 4, 77, 21, 9};
  two_ends() {
    fill_randomly(one.self);
    fill_randomly(two.self);
  }
  /// The stage in which it fails; 0: it does not. `spoil`: which message (1 to 4) is damaged, and where.
  int play(int spoil_message = 0, int spoil_at = 0) {
    const auto spoil = [&](int message) { return message == spoil_message ? spoil_at : -1; };
    handshake caller(one, 1, two.self), callee(two);
    news what = pass(caller, callee, spoil(1));
    if (what != news::named || callee.peer() != 0) return 1;
    callee.greet(one.self);
    if (pass(callee, caller, spoil(2)) != news::proven) return 2;
    caller.propose(first);
    if (pass(caller, callee, spoil(3)) != news::proposed) return 3;
    CHECK(callee.point() == first);
    callee.answer(verdict::agreed, second);
    if (pass(callee, caller, spoil(4)) != news::answered) return 4;
    CHECK(caller.said() == verdict::agreed);
    CHECK(caller.point() == second);
    return 0;
  }
};

}  // namespace

TEST_CASE("two ends with the same secret prove themselves to each other", "[tcp]") {
  CHECK(two_ends{}.play() == 0);
}

TEST_CASE("whoever is not what it says proves nothing", "[tcp]") {
  two_ends other_key, other_job, other_life, other_rank;
  other_key.one.key[31] ^= std::byte{1};
  CHECK(other_key.play() == 2);  // the callee's proof does not fit either
  other_job.two.job = "jo";
  CHECK(other_job.play() == 2);
  other_rank.two.rank = 2;
  CHECK(other_rank.play() == 1);
  const identity restarted{other_life.two.key, "job", 1, {}};
  handshake caller(other_life.one, 1, other_life.two.self), callee(restarted);
  REQUIRE(pass(caller, callee) == news::named);
  callee.greet(other_life.one.self);
  CHECK(pass(callee, caller) == news::failed);
}

TEST_CASE("a changed byte anywhere is noticed", "[tcp]") {
  for (int message = 1; message <= 4; ++message)
    for (int at = 0; at < 64; ++at) {
      CAPTURE(message, at);
      two_ends ends;
      // A changed nonce, or name of the caller, shows when the answer does not fit.
      const int failed = ends.play(message, at);
      CHECK(failed >= message);
      CHECK(failed <= (message == 1 ? 2 : message));
    }
}

TEST_CASE("nothing said once can be said again", "[tcp]") {
  two_ends ends;
  handshake caller(ends.one, 1, ends.two.self), callee(ends.two);
  const std::vector<std::byte> hello(caller.to_send().begin(), caller.to_send().end());
  pass(caller, callee);
  callee.greet(ends.one.self);
  const std::vector<std::byte> challenge(callee.to_send().begin(), callee.to_send().end());
  pass(callee, caller);
  caller.propose(ends.first);
  const std::vector<std::byte> proposal(caller.to_send().begin(), caller.to_send().end());
  const auto say = [](handshake& to, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), to.room().begin());
    return to.got(bytes.size());
  };
  handshake later(ends.two);
  CHECK(say(later, hello) == news::named);
  later.greet(ends.one.self);
  CHECK(say(later, proposal) == news::failed);
  handshake later_caller(ends.one, 1, ends.two.self);
  CHECK(say(later_caller, challenge) == news::failed);
  handshake reflected(ends.one);  // nor to its own author
  CHECK(say(reflected, hello) == news::failed);
}

TEST_CASE("the name of a session is the same at both ends, and no other's", "[tcp]") {
  const two_ends ends;
  const std::uint64_t name = session_identity(ends.one, 1, ends.two.self);
  CHECK(name == session_identity(ends.two, 0, ends.one.self));
  two_ends again = ends;
  again.two.self[0] ^= std::byte{1};
  CHECK(name != session_identity(again.one, 1, again.two.self));
  again = ends;
  again.one.key[0] ^= std::byte{1};
  CHECK(name != session_identity(again.one, 1, again.two.self));
}
