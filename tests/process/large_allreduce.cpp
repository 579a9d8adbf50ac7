// A rank program of large_collectives_test: `large_allreduce BYTES` sums BYTES bytes (as 64-bit words) in
// place, then broadcasts them from the last rank, and checks every word. Prints by how much the process grew
// meanwhile.
#include <verbena/verbena.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

namespace {

/// Largest resident size so far, without shared memory that others brought in: in KiB.
long high_water() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtol(line.c_str() + 6, nullptr, 10);
  return 0;
}

std::uint64_t word(std::uint64_t rank, std::uint64_t i) {
  return (i * 0x9e3779b97f4a7c15 ^ (i >> 7)) * (rank + 1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t words = argc > 1 ? std::strtoull(argv[1], nullptr, 10) / 8 : 1;
  verbena::context context;
  const verbena::communicator world = context.world();
  const auto self = static_cast<std::uint64_t>(world.rank().value);
  const auto n = static_cast<std::uint64_t>(world.size());
  const auto data = std::make_unique<std::uint64_t[]>(words);
  for (std::size_t i = 0; i < words; ++i) data[i] = word(self, i);
  const long before = high_water();

  const auto check = [&](const char* what, std::uint64_t factor, std::uint64_t by) {
    constexpr std::size_t block = (64 << 20) / 8;
    for (std::size_t from = 0; from < words; from += block) {
      std::uint64_t got = 0, right = 0;  // a checksum per 64 MiB that knows the place of each word
      for (std::size_t i = from; i < words && i < from + block; ++i) {
        got = got * 31 + data[i];
        right = right * 31 + word(0, i) * factor + by;
      }
      if (got == right) continue;
      std::fprintf(stderr, "rank %llu: %s is wrong between byte %zu and 64 MiB on\n",
                   static_cast<unsigned long long>(self), what, from * 8);
      std::exit(1);
    }
  };
  verbena::allreduce(world, data.get(), data.get(), words, verbena::element::u64, verbena::reduction::sum);
  check("the sum", n * (n + 1) / 2, 0);
  const verbena::rank root{world.size() - 1};
  for (std::size_t i = 0; i < words; ++i) data[i] = world.rank() == root ? word(0, i) + 3 : ~data[i];
  verbena::broadcast(world, data.get(), words * 8, root);
  check("the broadcast", 1, 3);
  std::printf("grew by %ld KiB\n", high_water() - before);
}
