// Which communicators one rank knows, by the slot of their context id, and how often each slot was used. So a
// packet for a communicator that was freed here is told from one whose creation this rank has not finished
// yet: the first is late and nobody wants it, the second must wait. A pure data structure: it must not know
// packets or members.
//
//   free --hold--> held --install--> live --remove--> free
//                  held --drop--> free       live --close--> closing --remove--> free
//
// A slot is held from the moment at which this rank proposes it to the others until they have agreed: nobody
// can send in the new communicator before every member has held its slot, so early packets meet a held slot,
// always.
//
// A slot is closing while operations of a freed communicator are under way: those that were posted still match, but a
// message that nobody has asked for by then nobody can ask for any more, so it is late. Collectives run to their end.
//
// The wire has 11 bits of the generation; here it is counted in full, so that members whose counts differ
// agree on one that none of them has used in the last 2,000 uses of the slot.
#pragma once

#include "base/check.hpp"

#include <bit>
#include <cstdint>
#include <vector>

namespace verbena::runtime {

/// Top bit of a context on the wire: the second context of a communicator, where its collectives are.
inline constexpr std::uint32_t collective_bit = 1U << 31;

class context_table {
 public:
  static constexpr unsigned slot_bits = 20;
  static constexpr std::uint32_t slots = 1U << slot_bits;
  static constexpr std::uint32_t generations = 1U << (31 - slot_bits);

  enum class standing : std::uint8_t { live, held, stale };

  static constexpr std::uint32_t slot_of(std::uint32_t context) noexcept { return context & (slots - 1); }
  static constexpr std::uint32_t context_of(std::uint32_t slot, std::uint64_t generation) noexcept {
    return slot | static_cast<std::uint32_t>(generation % generations) << slot_bits;
  }

  /// The lowest slot that is free and not below `at_least`; `slots` if there is none. Slot 0 is never given
  /// out.
  std::uint32_t lowest_free(std::uint32_t at_least) noexcept {
    if (at_least <= lowest_) at_least = lowest_;
    const bool from_lowest = at_least == lowest_;
    std::uint32_t found = at_least;
    while (found < entries_.size() && entries_[found].now != life::free) ++found;
    if (from_lowest) lowest_ = found;
    return found;
  }

  /// Takes a free slot for an agreement. False: it is not free.
  bool hold(std::uint32_t slot) {
    if (slot == 0 || slot >= slots) return false;
    if (slot >= entries_.size()) entries_.resize(std::bit_ceil(slot + 1U));
    if (entries_[slot].now != life::free) return false;
    entries_[slot].now = life::held;
    return true;
  }
  /// Of its last use here; 0: never used.
  std::uint64_t generation(std::uint32_t slot) const noexcept {
    return slot < entries_.size() ? entries_[slot].generation : 0;
  }
  void drop(std::uint32_t slot) noexcept {
    base::check(entries_[slot].now == life::held, "a communicator's slot is dropped that nobody held");
    entries_[slot].now = life::free;
    if (slot < lowest_) lowest_ = slot;
  }
  /// Returns the context id that the members agreed on.
  std::uint32_t install(std::uint32_t slot, std::uint64_t generation) noexcept {
    base::check(entries_[slot].now == life::held, "a communicator is made in a slot that nobody held");
    entries_[slot] = {generation, life::live};
    return context_of(slot, generation);
  }
  void close(std::uint32_t slot) noexcept {
    base::check(entries_[slot].now == life::live, "a communicator is closed that is not there");
    entries_[slot].now = life::closing;
  }
  void remove(std::uint32_t slot) noexcept {
    base::check(entries_[slot].now == life::live || entries_[slot].now == life::closing,
                "a communicator is removed twice");
    entries_[slot].now = life::free;
    if (slot < lowest_) lowest_ = slot;
  }

  /// What a packet's context means here; any 32 bits may come, the collective bit does not matter.
  standing of(std::uint32_t context) const noexcept {
    const bool of_collectives = (context & collective_bit) != 0;
    context &= ~collective_bit;
    const std::uint32_t slot = slot_of(context);
    if (slot >= entries_.size()) return standing::stale;
    const entry& known = entries_[slot];
    if (known.now == life::held) return standing::held;
    const bool wanted = known.now == life::live || (known.now == life::closing && of_collectives);
    return wanted && context == context_of(slot, known.generation) ? standing::live : standing::stale;
  }

 private:
  enum class life : std::uint8_t { free, held, live, closing };
  struct entry {
    std::uint64_t generation = 0;
    life now = life::free;
  };
  std::vector<entry> entries_{8};
  std::uint32_t lowest_ = 1;  ///< no slot below is free
};

}  // namespace verbena::runtime
