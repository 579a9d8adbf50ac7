// Messages of more bytes than an int can count: `large_counts BYTES...`, two ranks. Each 64 MiB are checked
// by themselves.
#include <verbena/verbena.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace verbena;

namespace {

constexpr std::size_t block = 64U << 20;

std::uint64_t word_at(std::size_t index, std::uint64_t seed) {
  return (index + seed) * 0x9e3779b97f4a7c15ULL;
}

/// The last bytes that make no word are those of the word that would be there.
void fill(std::byte* data, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = word_at(at / 8, seed);
    std::memcpy(data + at, &word, std::min<std::size_t>(8, bytes - at));
  }
}

bool check(const std::byte* data, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t first = 0; first < bytes; first += block) {
    const std::size_t end = std::min(bytes, first + block);
    std::uint64_t sum = 0, expected = 0;
    for (std::size_t at = first; at < end; at += 8) {
      const std::size_t part = std::min<std::size_t>(8, end - at);
      std::uint64_t got = 0, wanted = 0;
      const std::uint64_t whole = word_at(at / 8, seed);
      std::memcpy(&got, data + at, part);
      std::memcpy(&wanted, &whole, part);
      sum = sum * 31 + got;
      expected = expected * 31 + wanted;
    }
    if (sum == expected) continue;
    std::fprintf(stderr, "message of %zu B: the 64 MiB from byte %zu on are wrong\n", bytes, first);
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const context self;
  const communicator world = self.world();
  std::size_t most = 0;
  for (int i = 1; i < count; ++i)
    most = std::max<std::size_t>(most, std::strtoull(arguments[i], nullptr, 10));
  void* memory = ::mmap(nullptr, most + 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  auto* data = static_cast<std::byte*>(memory);
  for (int i = 1; i < count; ++i) {
    const std::size_t bytes = std::strtoull(arguments[i], nullptr, 10);
    const auto seed = static_cast<std::uint64_t>(i) << 40;
    if (world.rank() == rank{0}) {
      fill(data, bytes, seed);
      world.send(data, bytes, rank{1}, tag{1});
    } else {
      data[bytes] = std::byte{0x5a};
      const status got = world.recv(data, bytes, rank{0}, tag{1});
      if (got.bytes != bytes || data[bytes] != std::byte{0x5a} || !check(data, bytes, seed)) return 1;
      std::printf("%zu B are right\n", bytes);
    }
  }
  return 0;
}
