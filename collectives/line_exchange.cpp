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

/// What a line's sequence word is: the exchange's number, and above it a digest of the call.
std::uint64_t word_of(std::uint64_t number, std::uint64_t likeness) noexcept {
  return number | (bytes_in(likeness) ^ likeness >> 36 << 11) << 48;
}

class line_wait {
 public:
  line_wait(communicator_state& state, std::uint64_t word, std::uint64_t likeness) noexcept
      : state_(state), word_(word), watch_(state) {
    watch_.begin(state.announce(likeness), likeness);
  }
  lines_end until(const flagged_line& line) noexcept {
    int other = -1;
    const auto here = [&]() noexcept {
      return line.sequence.load(std::memory_order_acquire) == word_;  // then the payload is there too
    };
    if (!state_.wait.until(
            [&]() noexcept { return here() || (other = watch_.look(state_.patience())) >= 0; }))
      return lines_end::loss;
    if (other < 0) [[likely]]
      return lines_end::well;
    state_.unlike = other;
    return lines_end::mismatch;
  }

 private:
  communicator_state& state_;
  const std::uint64_t word_;
  announcement_watch watch_;
};

}  // namespace

lines_end allreduce_in_lines(communicator_state& state, const void* in, void* out, std::size_t count,
                             std::size_t element_bytes, kernel reduce, std::uint64_t likeness) noexcept {
  const std::uint64_t number = ++state.exchanges;
  const std::uint64_t word = word_of(number, likeness);
  const std::size_t half = number % 2;
  const std::size_t bytes = count * element_bytes;
  // Whole elements: 56 bytes of all but those of 16.
  const std::size_t per_line =
      element_bytes <= 8 ? line_payload : line_payload / element_bytes * element_bytes;
  const auto* const from = static_cast<const std::byte*>(in);
  auto* const to = static_cast<std::byte*>(out);
  line_wait wait(state, word, likeness);

  flagged_line* mine = state.node.member(state.self).lines[half];
  for (std::size_t at = 0; at < bytes; at += per_line, ++mine) {
    copy_short(mine->payload, from + at, std::min(bytes - at, per_line));
    mine->sequence.store(word, std::memory_order_release);
  }
  state.wait.wake_bells();

  std::size_t index = 0;
  for (std::size_t at = 0; at < bytes; at += per_line, ++index) {
    const std::size_t elements = std::min(bytes - at, per_line) / element_bytes;
    const std::byte* left = nullptr;
    for (int member = 0; member < state.size; ++member) {
      const flagged_line& line = state.node.member(member).lines[half][index];
      if (member != state.self)
        if (const lines_end end = wait.until(line); end != lines_end::well) [[unlikely]]
          return end;
      // In place, the input is gone once the first two operands are reduced; our line still has it.
      const std::byte* operand = member == state.self && member < 2 ? from + at : line.payload;
      if (member > 0) reduce(to + at, left, operand, elements);
      left = member > 0 ? to + at : operand;
    }
  }
  return lines_end::well;
}

lines_end barrier_in_lines(communicator_state& state) noexcept {
  const std::uint64_t number = ++state.exchanges;
  const std::uint64_t likeness = likeness_of(call_kind::barrier, 0, 0);
  const std::uint64_t word = word_of(number, likeness);
  const std::size_t half = number % 2;
  line_wait wait(state, word, likeness);
  state.node.member(state.self).lines[half][0].sequence.store(word, std::memory_order_release);
  state.wait.wake_bells();
  for (int member = 0; member < state.size; ++member)
    if (member != state.self)
      if (const lines_end end = wait.until(state.node.member(member).lines[half][0]); end != lines_end::well)
        return end;
  return lines_end::well;
}

void end_lines(communicator_state& state, lines_end how, std::string_view what, std::uint64_t likeness) {
  if (how == lines_end::well) return;
  if (how == lines_end::mismatch)
    state.lost(what, errc::mismatch, state.unlike, state.difference(state.unlike, state.numbered, likeness));
  const auto [why, who] = state.loss();
  state.lost(what, why, who);
}

}  // namespace verbena::collectives
