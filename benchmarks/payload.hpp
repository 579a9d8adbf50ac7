// Message buffers of the benchmarks, and the pattern that -c checks: every 8-byte word depends on the seed
// and on its place, so a byte that is stale, shifted, from another rank or from another repetition is seen.
// Behind the end lies a guard that no receive may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace bench {

/// What a message is: its pattern follows from this.
struct message {
  std::uint64_t size = 0;
  int iteration = 0;
  int sender = 0;
  int slot = 0;  ///< position in its window
};

/// Page-aligned, touched at once. The owner may lend `data()` to the library between fill and check.
class payload {
 public:
  explicit payload(std::uint64_t capacity);

  std::byte* data() { return bytes_.get(); }
  std::span<float> floats(std::uint64_t bytes) {
    return {reinterpret_cast<float*>(bytes_.get()), static_cast<std::size_t>(bytes / sizeof(float))};
  }

  void fill(const message& with) { fill_at(0, with); }
  /// Of a buffer of several messages, at a byte offset. The guard follows it, until the next one is filled.
  void fill_at(std::uint64_t offset, const message& with);
  /// Nothing, or the sentence that names size, rank, offset and both bytes. `receiver` is this rank.
  std::optional<std::string> wrong(const message& expected, int receiver) const;
  /// The same for one of several; `wrong_guard` says whether what follows the last is intact.
  std::optional<std::string> wrong_at(std::uint64_t offset, const message& expected, int receiver) const;
  std::optional<std::string> wrong_guard(std::uint64_t size, int receiver) const;

  /// The summands of rank `rank` of `size` in repetition `iteration`: small whole numbers, whose sum a float
  /// holds exactly whatever the order.
  void fill_summands(std::uint64_t bytes, int iteration, int rank);
  std::optional<std::string> wrong_sum(std::uint64_t bytes, int iteration, int receiver, int ranks) const;

 private:
  struct free_deleter {
    void operator()(std::byte* p) const noexcept;
  };

  std::unique_ptr<std::byte, free_deleter> bytes_;
};

}  // namespace bench
