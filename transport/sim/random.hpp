// The simulator's only source of chance: xoshiro256** seeded by splitmix64 (Blackman and Vigna), with ranges
// drawn by our own arithmetic, so that one seed gives one run on every compiler and standard library. Tests
// that must replay from a seed draw from it too.
#pragma once

#include <bit>
#include <cstdint>

namespace verbena::transport::sim {

class random_source {
 public:
  explicit constexpr random_source(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
      word = mixed ^ (mixed >> 31);
    }
  }

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// 0 <= result < bound; the bias (below 2^-32 * bound) does not matter here. `bound` > 0.
  constexpr std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }
  /// first <= result <= last
  constexpr std::uint32_t between(std::uint32_t first, std::uint32_t last) noexcept {
    return first + below(last - first + 1);
  }
  /// True `ppm` times in a million. Draws nothing if it cannot be true, so that a fault that is switched off
  /// leaves the rest of a run as it was.
  constexpr bool chance(std::uint32_t ppm) noexcept { return ppm != 0 && below(1'000'000) < ppm; }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace verbena::transport::sim
