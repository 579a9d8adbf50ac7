// What the checker computes with: expressions instead of numbers, and memory cells that know who touched them
// and when. Only for checker.cpp.
#pragma once

#include "collectives/schedule.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace verbena::collectives::checking {

/// A fault; caught in check_schedules and returned as its sentence.
struct fault {
  std::string text;
};

/// Vector clock: per rank, how many of its steps are known to be over.
using clock = std::vector<std::uint32_t>;
void join(clock& into, const clock& other);

/// An expression, by number: equal numbers are equal expressions. 0: nothing was ever written here.
using value = std::uint32_t;

class expressions {
 public:
  /// The operand of `rank`: what it brings for one chunk of one repetition.
  value leaf(int rank, std::uint32_t chunk, std::uint32_t turn);
  /// left (op) right. Faults: different chunks or repetitions, an operand that is in both.
  value combine(value left, value right);

  struct facts {
    std::uint32_t chunk = 0;
    std::uint32_t turn = 0;
    std::uint64_t operands = 0;  ///< bit r: rank r's is in
    int lowest = 0, highest = 0;
    bool rank_order = true;
  };
  const facts& about(value v) const { return all_[v]; }

 private:
  value add(const facts& f);
  std::vector<facts> all_{facts{}};
  std::map<std::tuple<int, std::uint32_t, std::uint32_t>, value> leaves_;
  std::map<std::pair<value, value>, value> sums_;
};

/// A cell of symbolic memory: whose, which buffer, which instance of it (repetition or slot), which chunk.
struct cell_key {
  int owner = 0;
  place where = place::none;
  std::uint32_t instance = 0;
  std::uint32_t at = 0;
  auto operator<=>(const cell_key&) const = default;
};

class memory {
 public:
  /// `now` is the clock of the rank that touches, its own component counting this step already.
  value read(const cell_key& key, int rank, const clock& now);
  void write(const cell_key& key, int rank, const clock& now, value what);
  value look(const cell_key& key) const;

 private:
  struct cell {
    value content = 0;
    std::map<int, std::uint32_t> reads, writes;  ///< last of each rank, by its own clock
  };
  static void ordered(const std::map<int, std::uint32_t>& before, const cell_key& key, int rank,
                      const clock& now, const char* what);
  std::map<cell_key, cell> cells_;
};

std::string name(const cell_key& key);

}  // namespace verbena::collectives::checking
