#include "collectives/node_block.hpp"

#include <algorithm>

namespace verbena::collectives {

node_view::node_view(std::byte* data, std::size_t bytes, int members) noexcept {
  constexpr std::size_t stagger =
      line_bytes;  // the same cell of all members must not fall into one cache set
  if (data == nullptr || members < 1) return;
  const auto n = static_cast<std::size_t>(members);
  const std::size_t heads = (block_page + n * sizeof(member_head) + block_page - 1) / block_page * block_page;
  if (bytes < heads + n * (stagger + node_slots * smallest_slot)) return;
  const std::size_t each = (bytes - heads) / n - stagger;
  data_ = data;
  slots_ = data + heads;
  slot_bytes_ = std::min(each / node_slots / line_bytes * line_bytes, largest_slot);
  span_ = node_slots * slot_bytes_ + stagger;
}

}  // namespace verbena::collectives
