// A rank program of allreduce_messages_test: how many messages do ten all-reduces of 4 KiB cost, over all
// ranks? Rank 0 prints the number.
#include <verbena/verbena.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

std::uint64_t messages_sent(const verbena::context& context) {
  for (const auto& [name, value] : context.counters())
    if (name == "messages_sent") return value;
  std::abort();
}

}  // namespace

int main() {
  verbena::context context;
  const verbena::communicator world = context.world();
  std::vector<std::int32_t> in(1024, world.rank().value), out(1024);
  const std::uint64_t before = messages_sent(context);
  for (int i = 0; i < 10; ++i) verbena::allreduce(world, in, out);
  const std::uint64_t mine = messages_sent(context) - before;
  const std::uint64_t all = verbena::allreduce(world, mine);
  if (world.rank() == verbena::rank{0}) std::printf("%llu\n", static_cast<unsigned long long>(all));
}
