// Thousands of contexts in one thread: what one costs, and that they reduce together.
#include "collectives/communicator_state.hpp"
#include "tests/sanitized.hpp"
#include "tests/unit/sim_job.hpp"

#include <malloc.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

using namespace verbena;

namespace {

std::size_t heap_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

TEST_CASE("four thousand contexts fit one process, and all-reduce in seconds", "[sim][scale]") {
  constexpr std::uint32_t size = 4096;
  const auto start = std::chrono::steady_clock::now();
  const std::size_t before = heap_in_use();
  transport::sim::world_options options;
  options.size = size;
  tests::sim_job job(options);
  const std::size_t fresh = heap_in_use() - before;

  std::vector<std::uint64_t> in(size), out(size);
  std::vector<collectives::execution*> running(size);
  for (std::uint32_t r = 0; r < size; ++r) {
    in[r] = r + 1;
    auto& state = collectives::communicator_state::of(job[r].world());
    running[r] = &state.idle(collectives::method::recursive_doubling);
    running[r]->start({&in[r], &out[r], 1, 8,
                       collectives::find_kernel(element::u64, reduction::sum, state.instructions), 4096});
    job[r].engine().add_task(*running[r]);
  }
  for (bool going = true; going;) {
    going = false;
    for (std::uint32_t r = 0; r < size; ++r) job[r].progress(job.world.now());
    for (std::uint32_t r = 0; r < size; ++r) going |= !running[r]->done();
    if (going) {
      REQUIRE(job.world.step());
      // All that happens at this moment or soon after, then everybody looks.
      for (std::uint32_t i = 0; i < size; ++i)
        if (!job.world.step()) break;
    }
  }
  for (std::uint32_t r = 0; r < size; ++r) REQUIRE(out[r] == std::uint64_t{size} * (size + 1) / 2);
  const std::size_t used = heap_in_use() - before;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  INFO(fresh / size << " B per fresh context, " << (used >> 20) << " MiB in all, " << seconds << " s");
  if (tests::sanitized) return;  // other heaps, other times
  CHECK(fresh > 0);
  CHECK(fresh / size <= 32 * 1024);
  CHECK(used < std::size_t{1} << 30);
  CHECK(seconds < 10);
}
