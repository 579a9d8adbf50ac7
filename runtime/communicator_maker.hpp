// One rank's part in the making of a communicator, for the collectives layer, whose calls bring about the
// agreement: which context ids are free here, what is held while the members agree, and the making itself.
// Local; nothing here sends. Like collective_port.hpp it is all that layer sees of the matter; it must not
// know how agreements are reached.
#pragma once

#include <verbena/owned_communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace verbena::runtime {

class communicator_maker {
 public:
  /// Ids are below; `slot_limit` itself says that none is free.
  static constexpr std::uint32_t slot_limit = 1U << 20;

  explicit communicator_maker(communicator parent) noexcept;
  /// Gives back what it still holds.
  ~communicator_maker();
  communicator_maker(const communicator_maker&) = delete;
  communicator_maker& operator=(const communicator_maker&) = delete;

  /// The lowest context slot that is free on this rank, at least `at_least`.
  std::uint32_t lowest_free(std::uint32_t at_least) const noexcept;
  /// Keeps the slot for the communicator to be made; messages that come for it are kept, too. False: not free
  /// here.
  bool hold(std::uint32_t slot);
  /// How often the slot was used here.
  std::uint64_t generation() const noexcept;
  /// The others did not have it free.
  void let_go() noexcept;

  /// Lowest job rank on this rank's node: the same for the ranks of one node, and for no others.
  int node() const noexcept;
  /// Are these ranks of the parent all on this rank's node? The same answer at all of them.
  bool on_this_node(std::span<const int> ranks) const noexcept;
  /// Takes a collective block for so many members (shared_blocks); 0: none to be had.
  std::uint64_t take_block(std::size_t members, std::size_t head_bytes, std::size_t member_bytes,
                           std::size_t least_bytes);

  /// While `told`, others may know of the block: it is not taken back, even if nothing is made.
  void tell_block(bool told) noexcept { told_ = told; }

  /// Makes it in the slot that is held. `ranks`: of the parent, in the new order, this rank among them;
  /// empty: all of them. `block`: the agreed one, or 0.
  owned_communicator make(std::uint64_t generation, std::span<const int> ranks, std::uint64_t block);
  /// As dup does.
  void copy_attributes(communicator to) const;

 private:
  communicator_state& parent_;
  std::uint32_t held_ = 0;   ///< 0: none
  std::uint64_t block_ = 0;  ///< taken and not used yet
  bool told_ = false;
};

}  // namespace verbena::runtime
