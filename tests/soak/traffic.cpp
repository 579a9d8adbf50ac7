#include "tests/soak/traffic.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace verbena::soak {
namespace {

std::uint64_t mixed(std::uint64_t z) noexcept {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

constexpr std::byte untouched{0xa5};

}  // namespace

const std::array<const char*, static_cast<std::size_t>(count::end)> count_names = {"rounds",
                                                                                   "sends",
                                                                                   "synchronous sends",
                                                                                   "receives",
                                                                                   "from any source",
                                                                                   "any tag",
                                                                                   "probed",
                                                                                   "persistent",
                                                                                   "cancelled",
                                                                                   "truncated",
                                                                                   "blocking pairs",
                                                                                   "flooded",
                                                                                   "collectives",
                                                                                   "started collectives",
                                                                                   "persistent collectives",
                                                                                   "communicators",
                                                                                   "puts",
                                                                                   "gets",
                                                                                   "atomics",
                                                                                   "flags"};

std::uint64_t dice::roll() noexcept {
  state_ += 0x9e3779b97f4a7c15ULL;
  return mixed(state_);
}

std::size_t dice::size(std::size_t most) noexcept {
  const auto digits = static_cast<std::uint64_t>(std::bit_width(most));
  const std::uint64_t scale = below(digits + 1);
  if (scale > 16 && !one_in(4)) return size(most);  // large ones take most of the time: fewer of them
  return std::min<std::size_t>(most, scale == 0 ? 0 : (1ULL << (scale - 1)) + below(1ULL << (scale - 1)));
}

std::uint64_t word_of(std::uint64_t key, std::uint64_t at) noexcept {
  return mixed(key + at * 0x9e3779b97f4a7c15ULL);
}

guarded_bytes::guarded_bytes(std::size_t size, std::pmr::memory_resource* from)
    : bytes_(size + guard, untouched, from) {}

void guarded_bytes::fill(std::uint64_t key) noexcept {
  for (std::size_t at = 0; at < size(); at += 8) {
    const std::uint64_t word = word_of(key, at);
    std::memcpy(data() + at, &word, std::min<std::size_t>(8, size() - at));
  }
}

bool guarded_bytes::holds(std::uint64_t key, std::size_t size) const noexcept {
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = word_of(key, at);
    if (std::memcmp(bytes_.data() + at, &word, std::min<std::size_t>(8, size - at)) != 0) return false;
  }
  return std::all_of(bytes_.end() - guard, bytes_.end(), [](std::byte b) { return b == untouched; });
}

dice traffic::common(std::uint64_t purpose) const {
  return dice{mixed(seed) ^ mixed(round * 1'000'003 + purpose)};
}

dice traffic::own(std::uint64_t purpose) const {
  return dice{common(purpose).roll() + static_cast<std::uint64_t>(self.rank().value) + 1};
}

void traffic::expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "rank %d: round %llu of seed %llu: %s\n", self.rank().value,
               static_cast<unsigned long long>(round), static_cast<unsigned long long>(seed), what);
  self.abort(3, what);
}

}  // namespace verbena::soak
