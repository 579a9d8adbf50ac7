// A rank program of verbs_test: what is registered with the RDMA device after messages, as the kernel tells it.
//
//   resend own | other   rank 0 sends one buffer of 3 MiB twice: of verbena::memory(), or not
//   resend scarce        several buffers of verbena::memory() and one that is too large, under a limit of locked memory
#include "registered.hpp"

#include <verbena/verbena.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory_resource>
#include <string>
#include <vector>

namespace {

using namespace verbena;

constexpr std::size_t size = 3 << 20;

const char* yes(bool is_so) {
  return is_so ? "yes" : "no";
}

std::uint64_t counter(const context& self, const std::string& wanted) {
  for (const auto& [name, value] : self.counters())
    if (name == wanted) return value;
  return ~std::uint64_t{0};
}

std::byte pattern(std::size_t seed, std::size_t at) {
  return static_cast<std::byte>(seed * 37 + at * 11 + at / 4093);
}

void twice(const context& self, const communicator& world, std::pmr::memory_resource* from) {
  const bool sender = world.rank() == rank{0};
  std::string first, second;
  {
    std::pmr::vector<std::byte> buffer(size, from);
    auto once = [&] {
      if (sender)
        world.send(buffer, rank{1}, tag{1});
      else
        world.recv(buffer, rank{0}, tag{1});
      barrier(world);
    };
    once();
    first = tests::registered_regions();
    barrier(world);
    once();
    second = tests::registered_regions();
  }
  if (sender)
    std::printf(
        "the buffer is registered after the first message: %s\nthe same regions after the second: %s\n"
        "registered after it is freed: %s\nfound %llu, made %llu, evicted %llu\n%s",
        yes(tests::has_region_of(first, size)), yes(first == second),
        yes(tests::has_region_of(tests::registered_regions(), size)),
        static_cast<unsigned long long>(counter(self, "registrations_found")),
        static_cast<unsigned long long>(counter(self, "registrations_made")),
        static_cast<unsigned long long>(counter(self, "registrations_evicted")), first.c_str());
  barrier(world);
}

/// Both ranks send and receive at the same time. False: some byte is wrong.
bool exchange(const communicator& world, std::byte* out, std::byte* in, std::size_t bytes, std::size_t seed) {
  const auto mine = static_cast<std::size_t>(world.rank().value);
  const rank other{1 - world.rank().value};
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = pattern(seed + mine, i);
    in[i] = std::byte{0};
  }
  request sending = world.isend(out, bytes, other, tag{2});
  world.recv(in, bytes, other, tag{2});
  sending.wait();
  for (std::size_t i = 0; i < bytes; ++i)
    if (in[i] != pattern(seed + 1 - mine, i)) return false;
  return true;
}

bool scarce(const context& self, const communicator& world) {
  constexpr std::size_t part = 256 << 10, parts = 6, large = 4 << 20;
  std::vector<std::pmr::vector<std::byte>> buffers;
  for (std::size_t i = 0; i < parts; ++i) buffers.emplace_back(part, &memory(self));
  bool right = true;
  for (std::size_t lap = 0; lap < 3; ++lap)
    for (std::size_t i = 0; i + 1 < parts; ++i)
      right = exchange(world, buffers[i].data(), buffers[i + 1].data(), part, lap + i) && right;
  std::vector<std::byte> plain_out(2 * part),
      plain_in(2 * part);  // there is no room for them, unless others go
  right = exchange(world, plain_out.data(), plain_in.data(), 2 * part, 5) && right;
  std::pmr::vector<std::byte> out(large, &memory(self)), in(large, &memory(self));  // never
  return exchange(world, out.data(), in.data(), large, 7) && right;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "own";
  const context self;
  const communicator world = self.world();
  if (what == "scarce") {
    const int wrong = allreduce(world, scarce(self, world) ? 0 : 1);
    if (world.rank() == rank{0}) std::printf("%s\n", wrong == 0 ? "every byte right" : "WRONG");
    return wrong;
  }
  twice(self, world, what == "own" ? &memory(self) : std::pmr::new_delete_resource());
}
