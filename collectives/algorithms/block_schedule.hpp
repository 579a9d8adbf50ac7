// What the algorithms over members' blocks begin with.
#pragma once

#include "collectives/algorithms/builder.hpp"

namespace verbena::collectives {

inline schedule block_schedule(int size, int scratch_cells = 0) {
  schedule result;
  result.blocks = true;
  result.chunks = static_cast<std::uint32_t>(size);
  result.scratch_chunks = static_cast<std::uint32_t>(scratch_cells);
  return result;
}

}  // namespace verbena::collectives
