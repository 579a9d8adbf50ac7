// A rank program of verbs_test: two ranks exchange messages of all sizes, and after a while rank 0 takes the port of the RDMA
// device down that both use. Rank 0 tells how long the longest exchange took, and whether every byte was right.
//
//   through_a_break back   the port comes back after two seconds
//   through_a_break stay   it does not; the call that fails ends the program
#include <verbena/verbena.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace verbena;
using clock = std::chrono::steady_clock;

std::byte pattern(std::size_t seed, std::size_t at) {
  return static_cast<std::byte>(seed * 37 + at * 11 + at / 4093);
}

/// Several messages both ways at once: eager ones, in pieces, and by rendezvous. False: some byte is wrong.
bool exchange(const communicator& world, std::size_t lap, const std::string& meanwhile) {
  constexpr std::size_t sizes[] = {0, 8, 200, 3000, 8192, 12'000, 100'000, 600'000};
  const auto mine = static_cast<std::size_t>(world.rank().value);
  const rank other{1 - world.rank().value};
  std::vector<std::vector<std::byte>> out, in;
  std::vector<request> all;
  for (const std::size_t size : sizes) {
    auto& to = out.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) to[i] = pattern(lap + mine, i);
    in.emplace_back(size);
  }
  for (std::size_t i = 0; i < std::size(sizes); ++i)
    all.push_back(world.irecv(in[i].data(), sizes[i], other, tag{1}));
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    all.push_back(world.isend(out[i].data(), sizes[i], other, tag{1}));
    if (i == 2 && !meanwhile.empty() && std::system(meanwhile.c_str()) != 0) return false;
  }
  for (request& r : all) r.wait();
  for (const auto& from : in)
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != pattern(lap + 1 - mine, i)) return false;
  return true;
}

}  // namespace

int main(int, char** arguments) {
  const bool comes_back = arguments[1] == std::string("back");
  const context self;
  const communicator world = self.world();
  const bool first = world.rank() == rank{0};
  const std::string down = comes_back
                               ? "ip link set eth0 down; (sleep 2; ip link set eth0 up) >/dev/null 2>&1 &"
                               : "ip link set eth0 down";
  bool right = true;
  clock::duration longest{};
  for (std::size_t lap = 0; lap < 30; ++lap) {
    const auto start = clock::now();
    right = exchange(world, lap, first && lap == 10 ? down : "") && right;
    longest = std::max(longest, clock::now() - start);
  }
  const int wrong = allreduce(world, right ? 0 : 1);
  if (first)
    std::printf(
        "%s; the longest exchange took %lld ms\n", wrong == 0 ? "every byte right" : "WRONG",
        static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
  return wrong;
}
