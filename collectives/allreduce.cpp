#include "collectives/calls.hpp"
#include "collectives/communicator_state.hpp"
#include "collectives/line_exchange.hpp"

#include <fmt/format.h>
#include <verbena/error.hpp>

#include <cstdint>
#include <cstring>

namespace verbena::collectives {
namespace {

[[noreturn, gnu::cold]] void refuse(const char* why) {
  throw error(errc::invalid_argument, fmt::format("allreduce: {}", why));
}

/// What can be seen at one rank. Returns the size of the vectors in bytes.
std::size_t check_arguments(const void* in, void* out, std::size_t count, element type, reduction how) {
  if (!is_element(type)) refuse("the element type is none of those in verbena::element");
  if (!is_reduction(how)) refuse("the operator is none of those in verbena::reduction");
  const std::size_t each = element_bytes(type);
  if (count == 0) return 0;
  if (in == nullptr || out == nullptr)
    refuse(in == nullptr ? "the input is a null pointer although the count is not 0"
                         : "the output is a null pointer although the count is not 0");
  if (count > PTRDIFF_MAX / each) refuse("the count is larger than memory");
  const auto from = reinterpret_cast<std::uintptr_t>(in);
  const auto to = reinterpret_cast<std::uintptr_t>(out);
  if (((from | to) & (each - 1)) != 0)
    refuse("a buffer is not aligned for its element type; copy it to an aligned one");
  const std::size_t bytes = count * each;
  if (from != to && from < to + bytes && to < from + bytes)
    refuse("input and output overlap without being the same; use one buffer for both, or two apart");
  return bytes;
}

}  // namespace

void allreduce(runtime::collective_port& port, const void* in, void* out, std::size_t count, element type,
               reduction how) {
  const std::size_t bytes = check_arguments(in, out, count, type, how);
  communicator_state& state = communicator_state::of(port);
  const std::size_t each = element_bytes(type);
  const kernel reduce = find_kernel(type, how, state.instructions);
  if (state.lines_for_allreduce && bytes - 1 < largest_line_exchange) [[likely]] {
    state.refuse_if_lost("allreduce");
    if (allreduce_in_lines(state, in, out, count, each, reduce)) [[likely]]
      return;
    const auto [why, who] = state.loss();
    state.lost("allreduce", why, who);
  }
  const choice chosen = choose_allreduce(state.here, bytes, port.settings());
  if (bytes == 0)
    return;  // MPI 4.0, section 6.1.1: nothing to combine, and a collective need not synchronise
  if (state.size == 1) {
    if (in != out) std::memcpy(out, in, bytes);
    return;
  }
  state.run(chosen.how, {in, out, count, each, reduce, chosen.segment_bytes}, "allreduce");
}

}  // namespace verbena::collectives
