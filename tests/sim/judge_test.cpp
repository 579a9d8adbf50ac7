// The judge itself: hand-made runs that MPI allows, and ones it forbids, which the judge must refuse.
#include "tests/sim/observed.hpp"

#include <catch2/catch.hpp>

using namespace verbena;
using namespace verbena::sim_tests;

namespace {

/// A receive at rank 0 that took the message of `size` bytes that is number `sequence` from `from`.
received took(std::int32_t want_source, std::int32_t want_label, std::uint32_t from, std::int32_t label,
              std::uint64_t sequence, std::size_t size) {
  received r;
  r.want_source = want_source;
  r.want_label = want_label;
  r.room = r.bytes = size;
  r.ended = true;
  r.source = static_cast<std::int32_t>(from);
  r.label = label;
  for (std::size_t i = 0; i < size; ++i) r.data.push_back(byte_of(message_name(0, from, 0, sequence), i));
  r.data.insert(r.data.end(), margin_bytes, margin_byte);
  return r;
}
received left_alone(std::int32_t want_source, std::int32_t want_label) {
  received r;
  r.want_source = want_source;
  r.want_label = want_label;
  r.ended = r.cancelled = true;
  r.error = errc::cancelled;
  r.data.assign(margin_bytes, margin_byte);
  return r;
}
sent message(std::int32_t label, std::size_t size) {
  return {0, label, size, true, errc::success};
}

/// Rank 1 sends sizes 10, 11, ... with these tags to rank 0, rank 2 sizes 20, 21, ...
observed run_of(std::vector<std::int32_t> from_one, std::vector<std::int32_t> from_two,
                std::vector<received> got) {
  observed run;
  run.sends.resize(3);
  run.receives.resize(3);
  for (std::size_t i = 0; i < from_one.size(); ++i) run.sends[1].push_back(message(from_one[i], 10 + i));
  for (std::size_t i = 0; i < from_two.size(); ++i) run.sends[2].push_back(message(from_two[i], 20 + i));
  run.receives[0] = std::move(got);
  return run;
}
bool allowed(const observed& run, std::optional<std::uint32_t> victim = {}) {
  return judge(run, {victim, {}}).empty();
}

}  // namespace

TEST_CASE("what MPI allows is allowed", "[judge]") {
  CHECK(allowed(run_of({0, 0}, {}, {took(1, 0, 1, 0, 0, 10), took(1, 0, 1, 0, 1, 11)})));
  // tags overtake: the first receive asks for the second message
  CHECK(allowed(run_of({0, 5}, {}, {took(1, 5, 1, 5, 1, 11), took(1, -1, 1, 0, 0, 10)})));
  // either sender may be first
  CHECK(allowed(run_of({0}, {0}, {took(-1, 0, 1, 0, 0, 10), took(-1, 0, 2, 0, 0, 20)})));
  CHECK(allowed(run_of({0}, {0}, {took(-1, 0, 2, 0, 0, 20), took(-1, 0, 1, 0, 0, 10)})));
  CHECK(allowed(run_of({0}, {}, {left_alone(1, 3), took(1, 0, 1, 0, 0, 10)})));
}

TEST_CASE("what MPI forbids is refused", "[judge]") {
  // overtaking within a sender
  CHECK_FALSE(allowed(run_of({0, 0}, {}, {took(1, 0, 1, 0, 1, 11), took(1, 0, 1, 0, 0, 10)})));
  CHECK_FALSE(allowed(run_of({0, 0}, {}, {took(-1, -1, 1, 0, 1, 11), took(1, -1, 1, 0, 0, 10)})));
  // a receive passed over
  CHECK_FALSE(allowed(run_of({0}, {}, {left_alone(-1, 0), took(1, 0, 1, 0, 0, 10)})));
  // a cycle over two senders: each receive needs the other's sender to have been later
  CHECK_FALSE(allowed(run_of({0, 1}, {1, 0},
                             {took(-1, 0, 2, 0, 1, 21), took(-1, 1, 1, 1, 1, 11), took(1, 0, 1, 0, 0, 10),
                              took(2, 1, 2, 1, 0, 20)})));
  // one message twice, a wrong byte, a wrong tag, a byte too many, an excuse nobody gave
  CHECK_FALSE(allowed(run_of({0}, {}, {took(1, 0, 1, 0, 0, 10), took(1, 0, 1, 0, 0, 10)})));
  auto run = run_of({0}, {}, {took(1, 0, 1, 0, 0, 10)});
  CHECK(allowed(run));
  run.receives[0][0].data[7] ^= std::byte{1};
  CHECK_FALSE(allowed(run));
  run = run_of({0}, {}, {took(1, 0, 1, 0, 0, 10)});
  run.receives[0][0].data[10] = std::byte{0};
  CHECK_FALSE(allowed(run));
  run = run_of({0}, {}, {took(1, 4, 1, 4, 0, 10)});
  CHECK_FALSE(allowed(run));
  run = run_of({0}, {}, {took(1, 0, 1, 0, 0, 10)});
  run.receives[0][0].error = errc::peer_failed;
  CHECK_FALSE(allowed(run));
  CHECK(allowed(run, 1));
  run.receives[0][0].ended = false;
  CHECK_FALSE(allowed(run, 1));
  run = run_of({0}, {}, {took(1, 0, 1, 0, 0, 10)});
  run.sends[1][0].ended = false;
  CHECK_FALSE(allowed(run));
}

TEST_CASE("what the dead sent is missing from some point on, not in between", "[judge]") {
  CHECK(allowed(run_of({0, 0, 0}, {}, {took(1, 0, 1, 0, 0, 10)}), 1));
  CHECK_FALSE(allowed(run_of({0, 0}, {}, {took(1, 0, 1, 0, 1, 11)}), 1));
  CHECK(allowed(run_of({3, 0}, {}, {took(1, 0, 1, 0, 1, 11)}), 1));  // nobody can tell
  received lost = left_alone(1, 0);
  lost.cancelled = false;
  lost.error = errc::peer_failed;  // it had the first one
  CHECK(allowed(run_of({0, 0}, {}, {lost, took(1, 0, 1, 0, 1, 11)}), 1));
}

TEST_CASE("a message that is too long is cut and said to be", "[judge]") {
  auto run = run_of({0}, {}, {took(1, 0, 1, 0, 0, 10)});
  received& r = run.receives[0][0];
  r.room = r.bytes = 4;
  r.data.assign(4 + margin_bytes, margin_byte);
  for (std::size_t i = 0; i < 4; ++i) r.data[i] = byte_of(message_name(0, 1, 0, 0), i);
  CHECK_FALSE(allowed(run));
  r.error = errc::truncated;
  CHECK(allowed(run));
  r.bytes = 0;  // nothing moved at all: also right
  CHECK(allowed(run));
}
