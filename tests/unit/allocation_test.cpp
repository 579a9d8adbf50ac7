// After warm-up the message path allocates nothing. A program of its own, since it replaces operator new.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};
}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
// GCC inlines one of the pair below and not the other, and then takes them for strangers.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t size) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size == 0 ? 1 : size);  // not the message path's; a sanitizer wants it to fit the delete
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace verbena;

namespace {

/// One round of everything on the message path: eager, pieces, rendezvous, unexpected, requests.
void round(context& self, std::vector<std::uint8_t>& out, std::vector<std::uint8_t>& in) {
  communicator world = self.world();
  const rank other{1 - self.rank().value};
  for (std::size_t size :
       {std::size_t{0}, std::size_t{8}, std::size_t{1000}, std::size_t{20'000}, out.size()}) {
    std::array<request, 4> requests;
    for (std::size_t i = 0; i < 2; ++i) requests[i] = world.isend(out.data(), size, other, tag{3});
    for (std::size_t i = 2; i < 4; ++i) requests[i] = world.irecv(in.data(), size, other, tag{3});
    for (request& r : requests) r.wait();
    if (self.rank().value == 0) {
      world.send(out.data(), size, other, tag{4});
      world.recv(in.data(), size, other, tag{4});
    } else {
      world.recv(in.data(), size, other, tag{4});
      world.send(out.data(), size, other, tag{4});
    }
  }
}

/// More messages at once, all unexpected, than rounds can ever meet: how many meet is a matter of timing, and
/// the pools must have grown for the worst of it.
void crowd(context& self, const std::vector<std::size_t>& sizes) {
  communicator world = self.world();
  std::vector<std::uint8_t> out(sizes.back()), in(sizes.back());
  std::vector<request> requests;
  const auto with_others = [&](auto&& act) {
    for (int other = 0; other < self.size(); ++other)
      if (other != self.rank().value) act(rank{other});
  };
  constexpr int each = 6;
  with_others([&](rank other) {
    for (const std::size_t size : sizes)
      for (int i = 0; i < each; ++i) requests.push_back(world.isend(out.data(), size, other, tag{5}));
    requests.push_back(world.isend(out.data(), 1, other, tag{6}));
  });
  // All that came before it is here by then, unexpected.
  with_others([&](rank other) { world.recv(in.data(), 1, other, tag{6}); });
  with_others([&](rank other) {
    for (const std::size_t size : sizes)
      for (int i = 0; i < each; ++i) requests.push_back(world.irecv(in.data(), size, other, tag{5}));
  });
  for (request& r : requests) r.wait();
}

}  // namespace

TEST_CASE("after warm-up the message path allocates nothing", "[allocation][threads]") {
  const auto said = tests::run_ranks(2, {}, [](context& self) -> std::string {
    std::vector<std::uint8_t> out(300'000, 5), in(300'000);
    for (int i = 0; i < 3; ++i) crowd(self, {0, 8, 1000, 20'000, out.size()});
    for (int i = 0; i < 200; ++i) round(self, out, in);
    counting = true;  // both ranks set it; each is past its own warm-up, and the other within a message of it
    for (int i = 0; i < 200; ++i) round(self, out, in);
    counting = false;
    return {};
  });
  CHECK(tests::complaint(said) == "");
  CHECK(allocations == 0);
  counting = true;
  ::operator delete(::operator new(8));  // called by name: a new-expression may be optimised away
  counting = false;
  CHECK(allocations.exchange(0) == 1);  // the guard itself can fail
}

TEST_CASE("after warm-up the collectives allocate nothing", "[allocation][collectives][threads]") {
  for (const char* algorithm : {"auto", "recursive_doubling", "ring"}) {
    INFO(algorithm);
    base::settings forced;
    forced.allreduce = algorithm;
    // By messages only short vectors: how many long ones meet in the engine at once, hence how large its
    // pools grow, is a matter of timing.
    const std::size_t longest = forced.allreduce == "auto" ? 50'000 : 400;
    const auto said = tests::run_ranks(3, forced, [longest](context& self) -> std::string {
      const communicator world = self.world();
      std::vector<double> in(longest, 1), out(longest);
      std::vector<std::uint8_t> mine(64, 1), blocks(3 * 64), back(3 * 64);
      std::vector<double> second(200, 1);
      persistent_request kept = allreduce_init(world, second, second, reduction::max);
      const auto once = [&] {
        for (const std::size_t count : {std::size_t{1}, std::size_t{100}, in.size()})
          allreduce(world, in.data(), out.data(), count, element::f64, reduction::sum);
        for (int root = 0; root < 3; ++root) broadcast(world, mine, rank{root});
        request first = kept.start();
        request gathering = iallgather(world, mine, blocks);
        request exchange = ialltoall(world, back.data(), back.data(), 64);
        exchange.wait();
        gathering.wait();
        first.wait();
        gather(world, mine, blocks, rank{1});
        scatter(world, blocks, mine, rank{1});
        barrier(world);
      };
      for (int i = 0; i < 3; ++i) crowd(self, {0, 8, 200, 400, 800, 1600, 3200});
      for (int i = 0; i < 50; ++i) once();
      counting = true;
      for (int i = 0; i < 20; ++i) once();
      counting = false;
      barrier(world);
      return out.back() == 3 ? "" : "wrong sum";
    });
    CHECK(tests::complaint(said) == "");
    CHECK(allocations.exchange(0) == 0);
  }
}
