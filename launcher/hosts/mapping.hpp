// Which ranks go to which host? A pure function of the hosts with their slots, the number of ranks and the policy. Where on a
// host is placement.hpp's question, which knows the same policies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

enum class mapping : std::uint8_t {
  slot,  ///< fill the slots of the first host, then those of the next
  node,  ///< one rank to each host in turn, while it has slots
  core,  ///< hosts as by slot; on each, one core after the other
  numa,  ///< hosts as by slot; on each, the memory domains in turn
};

/// The host of each rank, an index of `slots`. With more ranks than slots all hosts take further ranks in turn, by the same
/// policy. `slots` has at least one entry, and none of 0.
std::vector<std::uint32_t> map_ranks(mapping policy, const std::vector<unsigned>& slots, unsigned ranks);

/// Reads what follows --map. Empty, or the sentence to print.
std::string parse_mapping(std::string_view text, mapping& into);

}  // namespace verbena::launcher
