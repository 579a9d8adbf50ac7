#include "transport/self/event_queue.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <vector>

using namespace verbena::transport;
using self::event_queue;

namespace {
std::byte fill(std::uint64_t n) {
  return static_cast<std::byte>(n * 37 + 1);
}
}  // namespace

TEST_CASE("the loopback queue keeps order and contents through growth and wrapping", "[self]") {
  event_queue queue(8192);
  std::deque<std::uint64_t> model;
  std::uint64_t next = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::size_t size = (next * 7919) % 1500;
    std::byte* room = queue.push(event_queue::kind::packet, {next, ~next}, size);
    if (room != nullptr) {
      std::fill_n(room, size, fill(next));
      model.push_back(next++);
    } else {
      ++refused;
    }
    // Drains more than it fills every now and then, so that both ends of the bound are met.
    for (int i = 0; !model.empty() && (room == nullptr || round % 3 == 0) && i < (round % 11 == 0 ? 9 : 1);
         ++i) {
      const auto& at = queue.front();
      const std::uint64_t n = model.front();
      REQUIRE(at.head == envelope{n, ~n});
      REQUIRE(at.size == (n * 7919) % 1500);
      for (std::byte b : at.payload()) REQUIRE(b == fill(n));
      queue.pop();
      model.pop_front();
    }
    REQUIRE(queue.empty() == model.empty());
  }
  CHECK(refused > 100);
  CHECK(next > 1000);
}

TEST_CASE("the loopback queue refuses exactly what would exceed its bound, and nothing is lost by it",
          "[self]") {
  event_queue queue(4096);
  int held = 0;
  while (queue.push(event_queue::kind::flag, {}, 0) != nullptr) ++held;
  CHECK(held == 4096 / 24);
  CHECK(queue.push(event_queue::kind::packet, {}, 100) == nullptr);
  queue.pop();
  CHECK(queue.push(event_queue::kind::flag, {}, 0) != nullptr);
  for (; !queue.empty(); queue.pop()) --held;
  CHECK(held == 0);
}
