// Shared memory of communicators whose members are all on one node. The first member of a new communicator
// takes a block from its own part of the node's segment and tells the others where; it gives the block back
// once all members have said that they do not use it any more, which each does on its own when it frees the
// communicator. A member that died never says so: its blocks stay until the job ends. It must not know what
// the collectives keep in a block.
#pragma once

#include "runtime/collective_port.hpp"
#include "transport/routed_fabric.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbena::runtime {

class shared_blocks {
 public:
  explicit shared_blocks(transport::routed_fabric& fabric) : fabric_(fabric) {}
  shared_blocks(const shared_blocks&) = delete;
  shared_blocks& operator=(const shared_blocks&) = delete;

  /// Takes zeroed memory for `members` ranks; `head_bytes` once and `member_bytes` for each, or less per
  /// member if memory is short, at least `least_bytes`. Returns what names it to all ranks of the node; 0:
  /// none to be had.
  std::uint64_t take(std::uint32_t members, std::size_t head_bytes, std::size_t member_bytes,
                     std::size_t least_bytes);
  /// Nobody was told of it.
  void take_back(std::uint64_t name) noexcept;

  /// Where a member finds the block that another one took.
  node_block find(std::uint64_t name) const noexcept;
  /// This rank, a member, is done with it.
  void leave(std::uint64_t name) noexcept;

 private:
  struct card;  // in the segment
  card& at(std::uint64_t name) const noexcept;
  void give_back(std::uint64_t name) noexcept;
  void collect() noexcept;

  transport::routed_fabric& fabric_;
  std::vector<std::uint64_t> own_;  ///< taken by this rank, perhaps still in use
  std::size_t taken_since_ = 0;     ///< since those in use were counted last
};

}  // namespace verbena::runtime
