#include "collectives/line_exchange.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::collectives {
namespace {

/// Most calls carry one element: a copy of known length is two instructions.
void copy_short(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else {
    std::memcpy(to, from, bytes);
  }
}

bool wait_for_line(communicator_state& state, const flagged_line& line, std::uint64_t number) noexcept {
  return state.wait.until([&]() noexcept {
    return line.sequence.load(std::memory_order_acquire) == number;  // then the payload is there too
  });
}

}  // namespace

bool allreduce_in_lines(communicator_state& state, const void* in, void* out, std::size_t count,
                        std::size_t element_bytes, kernel reduce) noexcept {
  const std::uint64_t number = ++state.exchanges;
  const std::size_t half = number % 2;
  const std::size_t bytes = count * element_bytes;
  const auto* const from = static_cast<const std::byte*>(in);
  auto* const to = static_cast<std::byte*>(out);

  flagged_line* mine = state.node.member(state.self).lines[half];
  for (std::size_t at = 0; at < bytes; at += line_payload, ++mine) {
    copy_short(mine->payload, from + at, std::min(bytes - at, line_payload));
    mine->sequence.store(number, std::memory_order_release);
  }
  state.wait.wake_bells();

  std::size_t index = 0;
  for (std::size_t at = 0; at < bytes; at += line_payload, ++index) {
    const std::size_t elements = std::min(bytes - at, line_payload) / element_bytes;
    const std::byte* left = nullptr;
    for (int member = 0; member < state.size; ++member) {
      const flagged_line& line = state.node.member(member).lines[half][index];
      if (member != state.self && !wait_for_line(state, line, number)) return false;
      // In place, the input is gone once the first two operands are reduced; our line still has it.
      const std::byte* operand = member == state.self && member < 2 ? from + at : line.payload;
      if (member > 0) reduce(to + at, left, operand, elements);
      left = member > 0 ? to + at : operand;
    }
  }
  return true;
}

bool barrier_in_lines(communicator_state& state) noexcept {
  const std::uint64_t number = ++state.exchanges;
  const std::size_t half = number % 2;
  state.node.member(state.self).lines[half][0].sequence.store(number, std::memory_order_release);
  state.wait.wake_bells();
  for (int member = 0; member < state.size; ++member)
    if (member != state.self && !wait_for_line(state, state.node.member(member).lines[half][0], number))
      return false;
  return true;
}

}  // namespace verbena::collectives
