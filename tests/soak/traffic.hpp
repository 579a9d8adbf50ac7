// Random traffic between real ranks, checked byte by byte: what the parts of the soak program share. All ranks draw
// what a round does from the same dice, so nobody needs to be told; what is nobody else's business (order, waiting) each
// draws from its own. A round depends on seed and number alone, so one that failed can be played again.
#pragma once

#include <verbena/verbena.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

namespace verbena::soak {

/// Splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t roll() noexcept;
  /// 0 to `sides` - 1.
  std::uint64_t below(std::uint64_t sides) noexcept { return roll() % sides; }
  bool one_in(std::uint64_t sides) noexcept { return below(sides) == 0; }
  /// Bytes of a message: mostly few, seldom `most`; every order of magnitude is drawn.
  std::size_t size(std::size_t most) noexcept;

 private:
  std::uint64_t state_;
};

/// Bytes with a guard behind them that nobody may touch.
class guarded_bytes {
 public:
  explicit guarded_bytes(std::size_t size, std::pmr::memory_resource* from = std::pmr::new_delete_resource());
  std::byte* data() noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size() - guard; }
  void fill(std::uint64_t key) noexcept;
  /// The first `size` bytes are those of `key`, and the guard is whole.
  bool holds(std::uint64_t key, std::size_t size) const noexcept;

 private:
  static constexpr std::size_t guard = 32;
  std::pmr::vector<std::byte> bytes_;
};

/// The word number `at` of what belongs to `key`.
std::uint64_t word_of(std::uint64_t key, std::uint64_t at) noexcept;

enum class count : std::uint8_t {
  rounds,
  sends,
  synchronous_sends,
  receives,
  from_any_source,
  any_tag,
  probed,
  persistent,
  cancelled,
  truncated,
  blocking_pairs,
  flooded,
  collectives,
  started_collectives,
  persistent_collectives,
  communicators,
  puts,
  gets,
  atomics,
  flags,
  end
};
extern const std::array<const char*, static_cast<std::size_t>(count::end)> count_names;

/// One rank's view of the traffic.
struct traffic {
  context& self;
  std::uint64_t seed = 0;
  std::uint64_t round = 0;
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(count::end)> counts{};

  void add(count what, std::uint64_t amount = 1) { counts[static_cast<std::size_t>(what)] += amount; }
  /// Alike on all ranks, and other for each purpose.
  dice common(std::uint64_t purpose) const;
  dice own(std::uint64_t purpose) const;
  /// Ends the job unless `right`.
  void expect(bool right, const char* what);
};

// One round of each kind; collective over `on`. `salt` tells rounds inside rounds apart.
void exchange_messages(traffic& t, communicator on, std::uint64_t salt);
void talk_in_pairs(traffic& t, communicator on, std::uint64_t salt);
void flood(traffic& t, communicator on, std::uint64_t salt);
void run_collectives(traffic& t, communicator on, std::uint64_t salt);
void access_memory(traffic& t, communicator on, std::uint64_t salt);
void make_communicators(traffic& t, communicator on, std::uint64_t salt);

}  // namespace verbena::soak
