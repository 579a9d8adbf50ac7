#include "payload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace bench {
namespace {

constexpr std::size_t page = 4096;
constexpr std::uint64_t guard_bytes = 64;
constexpr int guard_byte = 0xa5;
constexpr std::uint64_t odd =
    0x9e3779b97f4a7c15;  // 2^64 / golden ratio: neighbouring words differ in all bytes

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;  // splitmix64's finaliser
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

std::uint64_t seed_of(const message& m) {
  const auto word = [](int part) { return static_cast<std::uint64_t>(static_cast<unsigned>(part)); };
  return mix(mix(m.size + (word(m.sender) << 48)) + (word(m.slot) << 32) + word(m.iteration));
}

std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  return seed + index * odd;
}

std::string sentence(int receiver, std::uint64_t size, std::uint64_t offset, std::byte found, std::byte right,
                     std::string_view where) {
  return fmt::format("rank {}: size {}: byte at offset {} is 0x{:02x}, must be 0x{:02x} ({})", receiver, size,
                     offset, std::to_integer<int>(found), std::to_integer<int>(right), where);
}

float summand(std::uint64_t index, int iteration) {
  return static_cast<float>((index + static_cast<std::uint64_t>(iteration)) % 61 + 1);
}

}  // namespace

void payload::free_deleter::operator()(std::byte* p) const noexcept {
  std::free(p);
}

payload::payload(std::uint64_t capacity) {
  const std::size_t room = (capacity + guard_bytes + page - 1) / page * page;
  bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(page, room)));
  if (!bytes_) throw std::bad_alloc();
  std::memset(bytes_.get(), guard_byte, room);
}

void payload::fill_at(std::uint64_t offset, const message& with) {
  const std::uint64_t seed = seed_of(with);
  const std::uint64_t words = with.size / 8;
  std::byte* at = bytes_.get() + offset;
  for (std::uint64_t i = 0; i < words; ++i) {
    const std::uint64_t word = word_at(seed, i);
    std::memcpy(at + i * 8, &word, 8);
  }
  const std::uint64_t last = word_at(seed, words);
  std::memcpy(at + words * 8, &last, with.size % 8);
  std::memset(at + with.size, guard_byte, guard_bytes);
}

std::optional<std::string> payload::wrong(const message& expected, int receiver) const {
  if (auto why = wrong_at(0, expected, receiver)) return why;
  return wrong_guard(expected.size, receiver);
}

std::optional<std::string> payload::wrong_at(std::uint64_t offset, const message& expected,
                                             int receiver) const {
  const std::uint64_t seed = seed_of(expected);
  const std::byte* at = bytes_.get() + offset;
  for (std::uint64_t start = 0; start < expected.size; start += 8) {
    const std::uint64_t right = word_at(seed, start / 8);
    const std::uint64_t length = std::min<std::uint64_t>(8, expected.size - start);
    if (std::memcmp(at + start, &right, length) == 0) [[likely]]
      continue;
    const auto* right_bytes = reinterpret_cast<const std::byte*>(&right);
    std::uint64_t i = 0;
    while (at[start + i] == right_bytes[i]) ++i;
    return sentence(receiver, expected.size, start + i, at[start + i], right_bytes[i],
                    fmt::format("repetition {}, message {} from rank {}", expected.iteration, expected.slot,
                                expected.sender));
  }
  return std::nullopt;
}

void payload::fill_summands(std::uint64_t bytes, int iteration, int rank) {
  std::uint64_t index = 0;
  for (float& value : floats(bytes)) value = static_cast<float>(rank + 1) * summand(index++, iteration);
  std::memset(bytes_.get() + bytes, guard_byte, guard_bytes);
}

std::optional<std::string> payload::wrong_sum(std::uint64_t bytes, int iteration, int receiver,
                                              int ranks) const {
  const float weights = static_cast<float>(ranks) * static_cast<float>(ranks + 1) / 2;
  for (std::uint64_t start = 0; start < bytes; start += sizeof(float)) {
    const float right = weights * summand(start / sizeof(float), iteration);
    if (std::memcmp(bytes_.get() + start, &right, sizeof right) == 0) [[likely]]
      continue;
    const auto* right_bytes = reinterpret_cast<const std::byte*>(&right);
    std::uint64_t i = 0;
    while (bytes_.get()[start + i] == right_bytes[i]) ++i;
    float found = 0;
    std::memcpy(&found, bytes_.get() + start, sizeof found);
    return sentence(receiver, bytes, start + i, bytes_.get()[start + i], right_bytes[i],
                    fmt::format("repetition {}, element {} is {}, the sum is {}", iteration,
                                start / sizeof(float), found, right));
  }
  return wrong_guard(bytes, receiver);
}

std::optional<std::string> payload::wrong_guard(std::uint64_t size, int receiver) const {
  for (std::uint64_t at = size; at < size + guard_bytes; ++at)
    if (bytes_.get()[at] != std::byte{guard_byte})
      return sentence(receiver, size, at, bytes_.get()[at], std::byte{guard_byte},
                      "behind the end of the buffer");
  return std::nullopt;
}

}  // namespace bench
