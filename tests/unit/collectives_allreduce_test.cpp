#include "collectives/calls.hpp"
#include "collectives/communicator_state.hpp"
#include "collectives_fake.hpp"

#include <catch2/catch.hpp>
#include <verbena/error.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace verbena;
using namespace verbena::collectives;
using test::fake_port;
using test::fake_world;

namespace {

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

/// Operand `i` of a rank in one round: small numbers whose sum, order and round show.
double operand(int rank, std::size_t i, int round) {
  return static_cast<double>((rank + 1) * 1000 + round) + static_cast<double>(i % 97) / 8;
}

double expected_sum(int size, std::size_t i, int round) {
  double sum = operand(0, i, round);
  for (int r = 1; r < size; ++r) sum += operand(r, i, round);
  return sum;
}

/// Many calls of many lengths in a row at one rank. Returns how many elements were wrong.
std::size_t many_calls(fake_port& port, int rounds) {
  std::size_t wrong = 0;
  std::vector<double> in, out;
  constexpr std::size_t counts[] = {1, 2, 7, 8, 1, 140, 141, 3000, 1, 20000, 3, 5000};
  for (int round = 0; round < rounds; ++round) {
    const std::size_t count = counts[static_cast<std::size_t>(round) % std::size(counts)];
    const bool in_place = round % 3 == 0;
    in.resize(count);
    out.assign(count, -1);
    for (std::size_t i = 0; i < count; ++i) in[i] = operand(port.self().value, i, round);
    if (in_place) out = in;
    allreduce(port, in_place ? out.data() : in.data(), out.data(), count, element::f64, reduction::sum);
    for (std::size_t i = 0; i < count; ++i) wrong += out[i] != expected_sum(port.size(), i, round);
    if (round % 5 == 0) barrier(port);
  }
  return wrong;
}

void many_calls_everywhere(fake_world& world, int rounds) {
  std::vector<std::size_t> wrong(world.ports.size(), 1);
  world.run([&](fake_port& port) {
    wrong[static_cast<std::size_t>(port.self().value)] = many_calls(port, rounds);
  });
  for (std::size_t one : wrong) CHECK(one == 0);
}

}  // namespace

TEST_CASE("blocking all-reduces and barriers of all lengths follow each other", "[collectives][allreduce]") {
  for (int size : {1, 2, 3, 4, 7}) {
    for (const char* forced : {"auto", "node", "recursive_doubling", "ring"}) {
      INFO(size << " ranks, " << forced);
      fake_world world(size, {true, size == 3});
      world.force(forced);
      many_calls_everywhere(world, 48);
    }
    INFO(size << " ranks, without a block");
    fake_world world(size, {false, size == 2});
    many_calls_everywhere(world, 48);
  }
}

TEST_CASE("short vectors in lines give what the schedule gives", "[collectives][allreduce]") {
  for (int size : {2, 3, 5}) {
    fake_world world(size);
    std::vector<std::vector<double>> fast(static_cast<std::size_t>(size)), slow = fast;
    world.run([&](fake_port& port) {
      communicator_state& state = communicator_state::of(port);
      const auto r = static_cast<std::size_t>(port.self().value);
      for (std::size_t count = 1; count <= largest_line_exchange / 8; ++count) {
        std::vector<double> in(count), out(count);
        for (std::size_t i = 0; i < count; ++i)
          in[i] = operand(port.self().value, i, 1) * 1e-17 * (i % 2 ? -1 : 1);
        const kernel sum = find_kernel(element::f64, reduction::sum, state.instructions);
        state.lines_for_allreduce = true;
        allreduce(port, in.data(), out.data(), count, element::f64, reduction::sum);
        fast[r].insert(fast[r].end(), out.begin(), out.end());
        state.run(method::node_exchange, {in.data(), out.data(), count, 8, sum, 4096}, "test");
        slow[r].insert(slow[r].end(), out.begin(), out.end());
      }
    });
    for (std::size_t r = 0; r < fast.size(); ++r) {
      CHECK(fast[r] == slow[0]);
      CHECK(slow[r] == slow[0]);
    }
  }
}

TEST_CASE("a barrier lets nobody out before all are in", "[collectives][barrier]") {
  for (int size : {2, 3, 6})
    for (const char* forced : {"auto", "dissemination", "node"}) {
      INFO(size << " ranks, " << forced);
      fake_world world(size);
      world.force("auto", forced);
      std::atomic<int> in{0};
      std::atomic<int> early{0};
      world.run([&](fake_port& port) {
        for (int round = 1; round <= 50; ++round) {
          in.fetch_add(1);
          barrier(port);
          if (in.load() < round * port.size()) early.fetch_add(1);
        }
      });
      CHECK(early.load() == 0);
      CHECK(in.load() == 50 * size);
    }
}

TEST_CASE("wrong arguments are refused with the reason", "[collectives][allreduce]") {
  fake_world world(1);
  fake_port& port = *world.ports[0];
  alignas(16) double buffer[8] = {};
  const auto refused = [&](const void* in, void* out, std::size_t count, element type = element::f64,
                           reduction how = reduction::sum) {
    return failure_of([&] { allreduce(port, in, out, count, type, how); });
  };
  CHECK(refused(nullptr, buffer, 1) == "allreduce: the input is a null pointer although the count is not 0");
  CHECK(refused(buffer, nullptr, 1) == "allreduce: the output is a null pointer although the count is not 0");
  CHECK(refused(nullptr, nullptr, 0).empty());
  CHECK_THAT(refused(buffer, buffer + 1, 2), Catch::Contains("overlap without being the same"));
  CHECK_THAT(refused(buffer + 1, buffer, 2), Catch::Contains("overlap without being the same"));
  CHECK(refused(buffer, buffer, 8).empty());
  CHECK(refused(buffer, buffer + 4, 4).empty());
  CHECK_THAT(refused(reinterpret_cast<char*>(buffer) + 1, buffer + 4, 1), Catch::Contains("not aligned"));
  CHECK_THAT(refused(buffer, buffer, SIZE_MAX / 8), Catch::Contains("larger than memory"));
  CHECK_THAT(refused(buffer, buffer, 1, static_cast<element>(99)), Catch::Contains("element type"));
  CHECK_THAT(refused(buffer, buffer, 1, element::f64, static_cast<reduction>(99)),
             Catch::Contains("operator"));
}

TEST_CASE("forcing what is not there is a clear error", "[collectives][allreduce][barrier]") {
  fake_world world(2, {false, false});
  world.force("node", "node");
  double x = 1;
  fake_port& port = *world.ports[0];
  CHECK_THAT(failure_of([&] { allreduce(port, &x, &x, 1, element::f64, reduction::sum); }),
             Catch::StartsWith("VERBENA_ALLREDUCE=node: this communicator has no shared memory of one node"));
  CHECK_THAT(failure_of([&] { barrier(port); }), Catch::StartsWith("VERBENA_BARRIER=node:"));
  world.force("rign", "rign");
  CHECK_THAT(failure_of([&] { allreduce(port, &x, &x, 1, element::f64, reduction::sum); }),
             Catch::Contains("VERBENA_ALLREDUCE=rign: no such algorithm"));
}

TEST_CASE("when a member dies, all others leave with an error that names it", "[collectives][failure]") {
  struct way {
    const char* allreduce;
    const char* barrier;
    std::size_t count;
    bool block;
  };
  const way ways[] = {{"auto", "auto", 1, true},
                      {"auto", "auto", 20000, true},
                      {"ring", "dissemination", 20000, true},
                      {"recursive_doubling", "auto", 5000, true},
                      {"auto", "auto", 300000, false},
                      {"ring", "auto", 1, false}};
  for (int size : {2, 4})
    for (const way& one : ways) {
      INFO(size << " ranks, " << one.allreduce << ", " << one.count << " elements, block " << one.block);
      fake_world world(size, {one.block, true});
      world.force(one.allreduce, one.barrier);
      std::vector<std::string> texts(static_cast<std::size_t>(size));
      std::vector<std::string> again = texts;
      std::vector<double> buffers(static_cast<std::size_t>(size) * one.count, 1.0);
      std::atomic<int> warm{0};
      std::chrono::steady_clock::time_point death;
      world.run([&](fake_port& port) {
        const auto r = static_cast<std::size_t>(port.self().value);
        double* mine = buffers.data() + r * one.count;
        const auto call = [&] { allreduce(port, mine, mine, one.count, element::f64, reduction::sum); };
        for (int round = 0; round < 3; ++round) call();
        warm.fetch_add(1);
        if (port.self().value == 1) {
          while (warm.load() < size) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          death = std::chrono::steady_clock::now();
          world.kill(1);
          return;
        }
        texts[r] = failure_of(call);
        again[r] = failure_of([&] { barrier(port); });
      });
      const auto took = std::chrono::steady_clock::now() - death;
      for (std::size_t r = 0; r < texts.size(); ++r) {
        if (r == 1) continue;
        CHECK_THAT(texts[r], Catch::StartsWith("allreduce: rank 1 of this communicator"));
        CHECK_THAT(again[r], Catch::StartsWith("barrier: rank 1 of this communicator"));
      }
      CHECK(took < std::chrono::seconds(1));
      for (auto& port : world.ports) CHECK(port->nothing_pending());  // everything was withdrawn
    }
}

TEST_CASE("a member that waits sleeps, and wakes when the others come", "[collectives][barrier]") {
  for (int size : {2, 5}) {  // in lines; by gathering
    fake_world world(size);
    std::atomic<int> through{0};
    world.run([&](fake_port& port) {
      if (port.self().value == 0) std::this_thread::sleep_for(std::chrono::milliseconds(60));
      barrier(port);
      through.fetch_add(1);
      barrier(port);
    });
    CHECK(through.load() == size);
  }
}

TEST_CASE("a message of another length than expected is an error that names both",
          "[collectives][mismatch]") {
  for (const std::size_t theirs : {80U, 1200U}) {
    fake_world world(2, {false, false});
    std::vector<double> in(2000), out(2000);
    std::string heard;
    world.run([&](fake_port& port) {
      std::vector<double> mine(2000), result(2000);
      const bool first = port.self().value == 0;
      const std::string text = failure_of([&] {
        allreduce(port, mine.data(), result.data(), first ? 1000 : theirs, element::f64, reduction::sum);
      });
      if (first) heard = text;
    });
    CHECK_THAT(
        heard,
        Catch::StartsWith("allreduce: rank 1 of this communicator of 2 made a call that does not fit: ") &&
            Catch::Contains(theirs == 80 ? "640 B where rank 0 expects" : "where rank 0 expects"));
  }
}
