// N endpoints of one fabric and what each of them has seen; how a check drives them. Rounds: every living
// endpoint polls once, then time passes if nobody had anything. A wait ends when its condition holds, or
// fails once nothing moves any more, so no check can hang.
#pragma once

#include "fabric_set.hpp"
#include "recorder.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace verbena::contract {

/// Byte `at` of message `seed`: differs between neighbours and between messages.
inline std::byte pattern(std::uint64_t seed, std::size_t at) {
  const std::uint64_t mixed = (seed + 1) * 0x9e3779b97f4a7c15ULL + at * 0x2545f4914f6cdd1dULL;
  return static_cast<std::byte>(mixed >> 56 ^ mixed >> 17);
}
inline void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(seed, i);
}
inline bool matches(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(seed, i)) return false;
  return true;
}

template <fabric_set Set>
class bench {
 public:
  using fabric_type = typename Set::fabric_type;

  bench(std::uint32_t endpoints, report& to)
      : size_(endpoints < Set::most ? endpoints : Set::most),
        set_(size_),
        seen_(size_),
        dead_(size_),
        to_(to) {}
  ~bench() {
    for (std::uint32_t i = 0; i < size_; ++i)
      to_.expect(seen_[i].outside_poll == 0,
                 fmt::format("endpoint {}: {} events were reported outside poll", i, seen_[i].outside_poll));
    for (const auto& op : operations_) {
      to_.expect(op->ends <= 1, fmt::format("an operation ended {} times", op->ends));
      to_.expect(op->ends_outside_poll == 0, "an operation ended outside poll");
    }
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  std::uint32_t size() const noexcept { return size_; }
  std::uint32_t last() const noexcept { return size_ - 1; }
  fabric_type& at(std::uint32_t i) { return set_.fabric(i); }
  recorder& seen(std::uint32_t i) { return seen_[i]; }
  Set& set() noexcept { return set_; }
  report& to() noexcept { return to_; }

  /// An operation of endpoint `i` that lives as long as the bench.
  tracked& make_operation(std::uint32_t i) {
    operations_.push_back(std::make_unique<tracked>(seen_[i]));
    return *operations_.back();
  }
  /// Memory that lives as long as the endpoints: a fabric under test may hold on to it.
  std::span<std::byte> make_memory(std::size_t bytes) {
    memory_.emplace_back(bytes + 1);
    return {memory_.back().data(), bytes};
  }
  static buffer whole(std::span<std::byte> bytes) { return {bytes.data(), bytes.size()}; }

  std::size_t poll(std::uint32_t i) {
    seen_[i].polling = true;
    const std::size_t before = seen_[i].events.size();
    const std::size_t reported = at(i).poll(set_.now(), seen_[i]);
    seen_[i].polling = false;
    to_.expect(reported != 0 || seen_[i].events.size() == before, "poll reported events and returned 0");
    return reported;
  }
  std::size_t poll_from(std::uint32_t i, std::uint32_t from) {
    seen_[i].polling = true;
    const std::size_t before = seen_[i].events.size();
    const std::size_t reported = at(i).poll_from(peer{from}, set_.now(), seen_[i]);
    seen_[i].polling = false;
    to_.expect(reported != 0 || seen_[i].events.size() == before, "poll_from reported events and returned 0");
    return reported;
  }

  /// False: nothing happened and no time passed.
  bool round() {
    std::size_t events = 0;
    for (std::uint32_t i = 0; i < size_; ++i)
      if (!dead_[i]) events += poll(i);
    return events != 0 || set_.pass_time();
  }
  template <class Condition>
  bool reached(Condition&& holds) {
    int quiet = 0;
    for (int rounds = 0; !holds(); ++rounds) {
      if (rounds == most_rounds) return false;
      quiet = round() ? 0 : quiet + 1;
      if (quiet > Set::quiet_rounds) return holds();
    }
    return true;
  }
  template <class Condition>
  void until(Condition&& holds, std::string what) {
    to_.require(reached(holds), "did not happen: " + std::move(what));
  }
  void settle() {
    reached([] { return false; });
  }

  /// Sends a patterned packet, polling all endpoints as long as it is refused.
  void send(std::uint32_t from, std::uint32_t to, std::uint64_t number, std::size_t size) {
    post_result result = post_result::again;
    until([&] { return (result = try_send(from, to, number, size)) != post_result::again; },
          fmt::format("a packet from {} to {} is taken in the end", from, to));
    to_.require(result == post_result::done, "send to a living peer answers done or again");
  }
  post_result try_send(std::uint32_t from, std::uint32_t to, std::uint64_t number, std::size_t size) {
    int calls = 0;
    const post_result result = at(from).send(peer{to}, envelope{number, ~number}, size, [&](std::byte* room) {
      ++calls;
      fill({room, size}, number);
    });
    if (result == post_result::done)
      to_.expect(calls == 1, fmt::format("send answered done and called the writer {} times", calls));
    else
      to_.expect(calls == 0 && result != post_result::pending,
                 "a refused send called the writer or is pending");
    return result;
  }

  /// Posts until the answer is not `again`; an operation is touched by `pending` only.
  template <class Post>
  post_result post(tracked& op, Post&& post_once) {
    post_result result = post_result::again;
    until(
        [&] {
          result = post_once(op.op);
          to_.expect(result == post_result::pending ? op.op.pending() : !op.op.pending() && op.ends == 0,
                     "an operation is pending exactly if its post answers pending");
          return result != post_result::again;
        },
        "a post is taken in the end");
    return result;
  }
  template <class Post>
  void post_and_finish(tracked& op, Post&& post_once, const char* what) {
    const post_result result = post(op, post_once);
    to_.require(result != post_result::down, fmt::format("{} to a living peer answers down", what));
    finish(op, result, what);
    if (result == post_result::pending)
      to_.expect(op.op.result.error == errc::success, fmt::format("{} ends with an error", what));
  }
  void finish(tracked& op, post_result result, const char* what) {
    if (result == post_result::pending) until([&] { return op.ends != 0; }, fmt::format("{} ends", what));
  }

  void kill(std::uint32_t i) {
    dead_[i] = true;
    set_.kill(i);
  }
  bool dead(std::uint32_t i) const { return dead_[i]; }

  /// A registration; a fabric may refuse some, not all.
  typename fabric_type::region registered(std::uint32_t i, std::span<std::byte> memory) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      typename fabric_type::region region = at(i).register_memory(whole(memory));
      if (region) return region;
      round();
    }
    to_.require(false, "register_memory refuses for ever");
    return {};
  }

 private:
  static constexpr int most_rounds = 1'000'000;

  std::uint32_t size_;
  std::deque<std::vector<std::byte>> memory_;  // outlives the endpoints
  std::vector<std::unique_ptr<tracked>> operations_;
  Set set_;
  std::vector<recorder> seen_;
  std::vector<bool> dead_;
  report& to_;
};

}  // namespace verbena::contract
