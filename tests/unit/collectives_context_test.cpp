// The public calls on whole contexts: engine, segment and collectives together, ranks as threads.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>
#include <verbena/verbena.hpp>

#include <string>
#include <vector>

using namespace verbena;

namespace {

std::string sums_of_all_lengths(context& self) {
  const communicator world = self.world();
  const int size = world.size();
  for (const std::size_t count : {0U, 1U, 2U, 7U, 140U, 141U, 1000U, 3001U, 40000U, 200000U}) {
    std::vector<std::int64_t> in(count), out(count, -1);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<std::int64_t>(i) * (world.rank().value + 1);
    allreduce(world, in, out);
    for (std::size_t i = 0; i < count; ++i)
      if (out[i] != static_cast<std::int64_t>(i) * size * (size + 1) / 2)
        return fmt::format("rank {}: element {} of {} is {}", world.rank().value, i, count, out[i]);
    barrier(world);
    allreduce(world, out.data(), out.data(), count, element::i64, reduction::max);
    if (count > 1 && out[1] != size * (size + 1) / 2) return "in place: wrong maximum";
  }
  if (allreduce(world, world.rank().value, reduction::min) != 0) return "wrong minimum";
  if (allreduce(world, 2.0F, reduction::product) != static_cast<float>(1 << size)) return "wrong product";
  return {};
}

}  // namespace

TEST_CASE("every algorithm is right on real contexts", "[collectives][context][threads]") {
  for (const char* algorithm : {"auto", "node", "recursive_doubling", "ring"})
    for (const std::uint32_t size : {1U, 2U, 3U, 5U}) {
      INFO(algorithm << ", " << size << " ranks");
      base::settings forced;
      forced.allreduce = algorithm;
      forced.barrier = size == 3 ? "dissemination" : "auto";
      CHECK(tests::complaint(tests::run_ranks(size, forced, sums_of_all_lengths)) == "");
    }
}

TEST_CASE("point-to-point messages do not meet those of a collective", "[collectives][context][threads]") {
  base::settings forced;
  forced.allreduce = "ring";
  const auto said = tests::run_ranks(2, forced, [](context& self) -> std::string {
    const communicator world = self.world();
    const rank other{1 - world.rank().value};
    std::vector<int> inbox(1, -1);
    request pending = world.irecv(inbox.data(), sizeof(int), any_source, any_tag);
    for (int i = 0; i < 20; ++i)
      if (allreduce(world, i) != 2 * i) return "wrong sum";
    world.send(7, other);
    pending.wait();
    return inbox[0] == 7 ? "" : "a receive of any message got one of a collective";
  });
  CHECK(tests::complaint(said) == "");
}
