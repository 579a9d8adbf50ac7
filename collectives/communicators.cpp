// How the members of a communicator agree on a new one: in rounds of all-reduces by maximum over what each
// brings, two in the common case. The first finds a slot for the context id (the highest of the lowest free
// ones) and tells the new groups; the second asks whether the slot is free at all members, how often it was
// used, and spreads the names of the groups' shared blocks. If it is not free somewhere, higher slots are
// tried.
#include "collectives/communicator_state.hpp"
#include "collectives/line_exchange.hpp"
#include "collectives/node_block.hpp"
#include "runtime/communicator_maker.hpp"

#include <fmt/format.h>
#include <verbena/communicators.hpp>
#include <verbena/error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace verbena {
namespace {

using collectives::communicator_state;
using runtime::communicator_maker;

class agreement {
 public:
  /// `words`: how many the caller brings along, and finds in `word` with the maxima of all.
  agreement(communicator on, std::string_view call, std::size_t words)
      : maker_(on), state_(communicator_state::of(on.port())), call_(call), words_(words + 1) {}

  std::uint64_t& word(std::size_t index) { return words_[index]; }
  communicator_maker& maker() noexcept { return maker_; }

  /// First round: spreads the words, and finds a slot to ask for.
  void propose() {
    words_.back() = maker_.lowest_free(floor_);
    maximum(words_);
    slot_ = static_cast<std::uint32_t>(words_.back());
    if (slot_ == communicator_maker::slot_limit)
      throw error(errc::out_of_memory,
                  fmt::format("{}: no context id is free at all ranks; free some communicators", call_));
  }

  /// The rest of the rounds: the slot, and the shared blocks of the groups. Each group is known by its
  /// leader, the first of its `ranks`; there are at most `leaders` of them, or one. `complaint`: not 0 if
  /// this rank has one. Returns the largest complaint of all.
  std::uint64_t settle(std::span<const int> ranks, std::size_t leaders, std::uint64_t complaint = 0) {
    const std::size_t leader = leaders == 1 || ranks.empty() ? 0 : static_cast<std::size_t>(ranks.front());
    const std::uint64_t own_block = block_for(ranks);
    for (;;) {
      const bool free = maker_.hold(slot_);
      std::vector<std::uint64_t> round(leaders + 3);
      if (own_block != 0) round[leader] = own_block;
      round[leaders] = free ? 0 : 1;
      round[leaders + 1] = free ? maker_.generation() : 0;
      round[leaders + 2] = complaint;
      maker_.tell_block(true);  // should this round break, somebody may use it nevertheless
      maximum(round);
      maker_.tell_block(false);
      if (round[leaders] == 0) {
        block_ = ranks.empty() ? 0 : round[leader];
        generation_ = round[leaders + 1] + 1;
        return round[leaders + 2];
      }
      maker_.let_go();
      floor_ = slot_ + 1;
      propose();
    }
  }

  owned_communicator make(std::span<const int> ranks) { return maker_.make(generation_, ranks, block_); }

 private:
  /// Takes a block if this rank is the first of `ranks`, and they are all on one node.
  std::uint64_t block_for(std::span<const int> ranks) {
    if (ranks.size() < 2 || ranks.front() != state_.self || !maker_.on_this_node(ranks)) return 0;
    using namespace collectives;
    const std::size_t heads = ranks.size() * sizeof(member_head) + 2 * block_page;
    return maker_.take_block(ranks.size(), heads, line_bytes + node_slots * largest_slot,
                             line_bytes + node_slots * smallest_slot);
  }

  /// A member that lives may still read and write the values of an exchange that has failed: they go to the
  /// communicator, as its user's would have to stay.
  void maximum(std::vector<std::uint64_t>& values) {
    state_.refuse_if_lost(call_);
    if (state_.size == 1) return;
    try {
      exchange(values);
    } catch (...) {
      state_.keep(std::make_shared<std::vector<std::uint64_t>>(std::move(values)));
      throw;
    }
  }

  void exchange(std::vector<std::uint64_t>& values) {
    // The library's own exchange: no setting forces its algorithm.
    const std::size_t bytes = values.size() * 8;
    const collectives::choice chosen = collectives::choose_allreduce(state_.here, bytes, {}, {});
    const collectives::kernel larger =
        collectives::find_kernel(element::u64, reduction::max, state_.instructions);
    const std::uint64_t likeness = collectives::likeness_of(collectives::call_kind::communicators, bytes, 0);
    if (chosen.lines) {
      const collectives::lines_end end = collectives::allreduce_in_lines(state_, values.data(), values.data(),
                                                                         values.size(), 8, larger, likeness);
      return collectives::end_lines(state_, end, call_, likeness);
    }
    collectives::prepared what{.name = call_, .chosen = chosen};
    what.call = {values.data(), values.data(), values.size(), 8, larger, chosen.segment_bytes};
    what.call.likeness = likeness;
    collectives::run(state_, what);
  }

  communicator_maker maker_;
  communicator_state& state_;
  std::string_view call_;
  std::vector<std::uint64_t> words_;
  std::uint32_t floor_ = 1;
  std::uint32_t slot_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t block_ = 0;
};

/// Color and key in one word that a maximum with zero leaves alone; undefined is zero.
std::uint64_t pack(int color, int key) noexcept {
  if (color == undefined_color) return 0;
  return (std::uint64_t{static_cast<std::uint32_t>(color)} + 1) << 32 |
         (static_cast<std::uint32_t>(key) ^ 0x80000000U);
}

owned_communicator split_as(communicator on, int color, int key, std::string_view call) {
  const auto n = static_cast<std::size_t>(on.size());
  const auto self = static_cast<std::size_t>(on.rank().value);
  agreement all(on, call, n + 1);
  const bool bad = color < 0 && color != undefined_color;
  all.word(self) = bad ? 0 : pack(color, key);
  all.word(n) = bad ? self + 1 : 0;
  all.propose();
  if (all.word(n) != 0)
    throw error(errc::invalid_argument,
                fmt::format("{}: rank {} gave a negative color; colors are 0 or more, or undefined_color",
                            call, all.word(n) - 1));
  std::vector<std::pair<std::uint64_t, int>> mine;
  if (color != undefined_color)
    for (std::size_t r = 0; r < n; ++r)
      if (all.word(r) >> 32 == all.word(self) >> 32) mine.emplace_back(all.word(r), static_cast<int>(r));
  std::sort(mine.begin(), mine.end());  // of one color, so by key, then by rank
  std::vector<int> ranks;
  for (const auto& one : mine) ranks.push_back(one.second);
  all.settle(ranks, n);
  return ranks.empty() ? owned_communicator{} : all.make(ranks);
}

enum class list_fault : std::uint64_t { none, outside, repeated };

list_fault look_at(std::span<const rank> members, int size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (const rank r : members) {
    if (r.value < 0 || r.value >= size) return list_fault::outside;
    if (seen[static_cast<std::size_t>(r.value)]) return list_fault::repeated;
    seen[static_cast<std::size_t>(r.value)] = true;
  }
  return list_fault::none;
}

/// What tells lists apart, never zero (FNV-1a).
std::uint64_t digest(std::span<const rank> members) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const rank r : members)
    for (unsigned shift = 0; shift < 32; shift += 8)
      sum = (sum ^ (static_cast<std::uint32_t>(r.value) >> shift & 0xff)) * 0x100000001b3ULL;
  return sum | 1;
}

}  // namespace

owned_communicator dup(communicator on) {
  const runtime::entrance inside(on.port().doors());
  agreement all(on, "dup", 0);
  std::vector<int> ranks(static_cast<std::size_t>(on.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  all.propose();
  all.settle(ranks, 1);
  owned_communicator made = all.make({});
  all.maker().copy_attributes(made);
  return made;
}

owned_communicator split(communicator on, int color, int key) {
  const runtime::entrance inside(on.port().doors());
  return split_as(on, color, key, "split");
}

owned_communicator split_node(communicator on) {
  const runtime::entrance inside(on.port().doors());
  const communicator_maker look(on);
  return split_as(on, look.node(), 0, "split_node");
}

owned_communicator create(communicator on, std::span<const rank> members) {
  const runtime::entrance inside(on.port().doors());
  const auto n = static_cast<std::size_t>(on.size());
  const auto self = static_cast<std::size_t>(on.rank().value);
  agreement all(on, "create", n + 1);
  const list_fault fault = look_at(members, on.size());
  const bool member =
      fault == list_fault::none && std::find(members.begin(), members.end(), on.rank()) != members.end();
  all.word(self) = member ? digest(members) : 0;
  all.word(n) = fault == list_fault::none ? 0 : (self + 1) << 8 | static_cast<std::uint64_t>(fault);
  all.propose();
  if (const std::uint64_t found = all.word(n); found != 0)
    throw error(errc::invalid_argument,
                fmt::format("create: the list of rank {} {}", (found >> 8) - 1,
                            static_cast<list_fault>(found & 0xff) == list_fault::outside
                                ? fmt::format("has a rank that is not in this communicator (0..{})", n - 1)
                                : "has a rank twice"));
  std::vector<int> ranks;
  std::uint64_t odd_one = 0;
  if (member)
    for (const rank r : members) {
      ranks.push_back(r.value);
      if (all.word(static_cast<std::size_t>(r.value)) != all.word(self))
        odd_one = static_cast<std::uint64_t>(r.value) + 1;
    }
  if (const std::uint64_t odd = all.settle(ranks, n, odd_one); odd != 0)
    throw error(
        errc::invalid_argument,
        fmt::format(
            "create: rank {} is in the list of a rank whose list is not the same; all members of a new "
            "communicator give the same list",
            odd - 1));
  return ranks.empty() ? owned_communicator{} : all.make(ranks);
}

}  // namespace verbena
