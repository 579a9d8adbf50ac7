#include "collectives/executor.hpp"

#include "collectives/algorithms/algorithms.hpp"
#include "collectives/communicator_state.hpp"
#include "collectives_fake.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace verbena;
using namespace verbena::collectives;
using test::fake_world;

namespace {

constexpr method all_reduces[] = {method::recursive_doubling,   method::ring,
                                  method::node_exchange,        method::node_slices,
                                  method::node_gathered_slices, method::node_gathering};

/// Everybody's operands and results of one all-reduce, each vector `offset` elements into its buffer.
template <class Type>
struct vectors {
  std::vector<std::vector<Type>> in, out;
  std::size_t offset;

  vectors(int size, std::size_t count, std::size_t skip, unsigned seed) : offset(skip) {
    std::mt19937_64 random(seed);
    for (int r = 0; r < size; ++r) {
      std::vector<Type> one(count + offset + 1);
      for (Type& x : one) {
        if constexpr (std::is_floating_point_v<Type>) {
          // 1e-300 to 1e300, either sign: the order of additions shows in the bits.
          x = std::pow(10.0, static_cast<double>(random() % 601) - 300) * (random() % 2 == 0 ? 1 : -1);
        } else {
          x = static_cast<Type>(random());
        }
      }
      in.push_back(one);
      out.push_back(std::vector<Type>(count + offset + 1, Type{99}));
    }
  }
  std::vector<Type> serial_sum(std::size_t count) const {
    std::vector<Type> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = in[0][offset + i];
      for (std::size_t r = 1; r < in.size(); ++r) {
        const Type next = in[r][offset + i];
        if constexpr (std::is_integral_v<Type>) {
          result[i] =
              static_cast<Type>(static_cast<std::uint64_t>(result[i]) + static_cast<std::uint64_t>(next));
        } else {
          result[i] += next;
        }
      }
    }
    return result;
  }
};

/// Runs one call at all ranks from one thread, in an order that `seed` decides. Without blocking.
template <class Type>
void run_all(fake_world& world, method how, vectors<Type>& data, std::size_t count, bool in_place,
             std::size_t segment_bytes, unsigned seed) {
  std::vector<execution*> running;
  for (std::size_t r = 0; r < world.ports.size(); ++r) {
    communicator_state& state = communicator_state::of(*world.ports[r]);
    work call;
    call.out = data.out[r].data() + data.offset;
    call.in = in_place ? call.out : data.in[r].data() + data.offset;
    if (in_place) data.out[r] = data.in[r];
    call.count = count;
    call.element_bytes = sizeof(Type);
    call.reduce = find_kernel(element_of<Type>(), reduction::sum, state.instructions);
    call.segment_bytes = segment_bytes;
    running.push_back(&state.idle(how));
    running.back()->start(call);
  }
  std::mt19937 random(seed);
  std::size_t done = 0;
  for (int idle_rounds = 0; done < running.size() && idle_rounds < 100000; ++idle_rounds) {
    const std::size_t r = random() % running.size();
    world.ports[r]->progress();
    running[r]->advance();
    done = static_cast<std::size_t>(
        std::count_if(running.begin(), running.end(), [](execution* one) { return one->done(); }));
  }
  REQUIRE(done == running.size());
  for (execution* one : running) REQUIRE(one->error() == errc::success);
}

template <class Type>
bool same_bits(const std::vector<Type>& a, std::size_t at, const std::vector<Type>& b, std::size_t from,
               std::size_t count) {
  return count == 0 || std::memcmp(a.data() + at, b.data() + from, count * sizeof(Type)) == 0;
}

template <class Type>
void compare_with_serial(int size, bool rendezvous) {
  for (method how : all_reduces) {
    fake_world world(size, {true, rendezvous});
    const auto n = static_cast<std::size_t>(size);
    unsigned seed = 1;
    for (std::size_t count :
         {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1, std::size_t{97}, std::size_t{769}})
      for (std::size_t offset : {0U, 1U, 5U})
        for (bool in_place : {false, true})
          for (std::size_t segment : {4096U, 512U}) {
            INFO(name(how) << ", " << size << " ranks, " << count << " elements of " << sizeof(Type) << " at "
                           << offset << (in_place ? ", in place" : "") << ", segments of " << segment);
            vectors<Type> data(size, count, offset, ++seed);
            run_all(world, how, data, count, in_place, segment, seed);
            const std::vector<Type> expected = data.serial_sum(count);
            // The message algorithms add in another (fixed) order: then only integers equal the model.
            const bool on_node = how != method::ring && how != method::recursive_doubling;
            const bool exact = on_node || !std::is_floating_point_v<Type>;
            bool right = true;
            bool alike = true;
            for (const auto& out : data.out) {
              right &= !exact || same_bits(out, offset, expected, 0, count);
              alike &= same_bits(out, offset, data.out[0], offset, count);
              if (!in_place) right &= out[offset + count] == Type{99};
            }
            CHECK(right);
            CHECK(alike);
          }
  }
}

}  // namespace

TEST_CASE("all-reduces equal a serial model", "[collectives][executor]") {
  for (int size = 1; size <= 17; ++size) compare_with_serial<std::int32_t>(size, size % 2 == 0);
}

TEST_CASE("doubles of any magnitude: bits equal on all ranks", "[collectives][executor]") {
  for (int size : {2, 3, 5, 8, 13}) compare_with_serial<double>(size, true);
}

TEST_CASE("one byte elements", "[collectives][executor]") {
  for (int size : {2, 7}) compare_with_serial<std::uint8_t>(size, false);
}

TEST_CASE("the number of messages is the formula times the segments", "[collectives][executor]") {
  for (int size : {2, 3, 7, 8})
    for (method how : {method::recursive_doubling, method::ring}) {
      fake_world world(size);
      vectors<double> data(size, 1000, 0, 3);
      run_all(world, how, data, 1000, false, 2048, 4);
      work call;
      call.count = 1000;
      call.element_bytes = 8;
      call.segment_bytes = 2048;
      const std::uint64_t repetitions = segments_of(call).repetitions;
      CHECK(repetitions == 4);
      for (int r = 0; r < size; ++r) {
        const std::uint64_t formula =
            how == method::ring ? allreduce_ring_sent(r, size) : allreduce_recursive_doubling_sent(r, size);
        CHECK(world.ports[static_cast<std::size_t>(r)]->sent == formula * repetitions);
      }
    }
}

TEST_CASE("segments are nearly equal, whole lines, and cover the vector", "[collectives][executor]") {
  for (std::size_t count : {0U, 1U, 15U, 16U, 17U, 1000U, 1025U})
    for (std::size_t bytes : {1U, 64U, 100U, 4096U})
      for (std::size_t each : {1U, 4U, 8U}) {
        work call;
        call.count = count;
        call.element_bytes = each;
        call.segment_bytes = bytes;
        const segmentation parts = segments_of(call);
        CHECK(parts.repetitions >= 1);
        CHECK(parts.elements * parts.repetitions >= count);
        CHECK(parts.elements * each % 64 == 0);
        CHECK(parts.elements * each <= std::max<std::size_t>(bytes, 64));
        if (count > 0) CHECK((parts.repetitions - 1) * parts.elements < count);
      }
}

TEST_CASE("an execution linked as a task runs by progress alone", "[collectives][executor]") {
  fake_world world(3);
  vectors<std::int64_t> data(3, 500, 0, 1);
  std::vector<execution*> running;
  for (std::size_t r = 0; r < 3; ++r) {
    communicator_state& state = communicator_state::of(*world.ports[r]);
    running.push_back(&state.idle(method::ring));
    running.back()->start({data.in[r].data(), data.out[r].data(), 500, 8,
                           find_kernel(element::i64, reduction::sum, state.instructions), 1024});
    world.ports[r]->add_task(*running.back());
  }
  for (int i = 0; i < 1000; ++i)
    for (auto& port : world.ports) port->progress();
  for (execution* one : running) {
    CHECK(one->done());
    CHECK_FALSE(one->linked());
  }
  CHECK(same_bits(data.out[1], 0, data.serial_sum(500), 0, 500));
}

TEST_CASE("executions on one node block take turns, others overlap", "[collectives][executor]") {
  fake_world world(3);
  vectors<std::int64_t> a(3, 700, 0, 1), b(3, 300, 0, 2), c(3, 400, 0, 3);
  std::vector<execution*> running;
  for (std::size_t r = 0; r < 3; ++r) {
    communicator_state& state = communicator_state::of(*world.ports[r]);
    const kernel sum = find_kernel(element::i64, reduction::sum, state.instructions);
    const auto begin = [&](method how, vectors<std::int64_t>& data, std::size_t count) {
      running.push_back(&state.idle(how));
      running.back()->start({data.in[r].data(), data.out[r].data(), count, 8, sum, 1024});
    };
    begin(method::node_slices, a, 700);
    begin(method::node_slices, b, 300);
    begin(method::ring, c, 400);
  }
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    world.ports[random() % 3]->progress();
    running[random() % running.size()]->advance();
  }
  for (execution* one : running) CHECK(one->done());
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(same_bits(a.out[r], 0, a.serial_sum(700), 0, 700));
    CHECK(same_bits(b.out[r], 0, b.serial_sum(300), 0, 300));
    CHECK(same_bits(c.out[r], 0, c.serial_sum(400), 0, 400));
  }
}
