// Reduce and allreduce: checked, chosen, and the short way of a blocking allreduce.
#include "collectives/arguments.hpp"
#include "collectives/calls.hpp"
#include "collectives/line_exchange.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace verbena::collectives {
namespace {

constexpr std::size_t largest_element = 1 << 20;

void check_aligned(std::string_view call, const void* a, const void* b, std::size_t alignment) {
  const auto both = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b);
  if ((both & (alignment - 1)) != 0) [[unlikely]]
    refuse_argument(call, "a buffer is not aligned for its element type; copy it to an aligned one");
}

}  // namespace

operation_by::found operation_by::find(const communicator_state& state, std::string_view call) const {
  found result;
  if (users_ != nullptr) {
    if (users_->combine == nullptr) refuse_argument(call, "the operator has no function");
    if (users_->element_bytes == 0 || users_->element_bytes > largest_element)
      refuse_argument(call, fmt::format("the operator's elements have {} B; 1 B to 1 MiB are possible",
                                        users_->element_bytes));
    result.combine = *users_;
    result.traits = {users_->element_bytes, users_->commutative, true};
    result.digest = 0xff;
    return result;
  }
  if (!is_element(type_)) refuse_argument(call, "the element type is none of those in verbena::element");
  if (!is_reduction(how_)) refuse_argument(call, "the operator is none of those in verbena::reduction");
  result.plain = find_kernel(type_, how_, state.instructions);
  if (result.plain == nullptr)
    refuse_argument(call,
                    fmt::format("the operator {} is not defined for elements {}", name(how_), name(type_)));
  result.combine = result.plain;
  result.traits = {element_bytes(type_), true, false};
  result.alignment = element_alignment(type_);
  result.digest = digest_of(type_, how_);
  return result;
}

prepared prepare_allreduce(communicator_state& state, const void* in, void* out, std::size_t count,
                           const operation_by& how) {
  const operation_by::found by = how.find(state, "allreduce");
  const std::size_t each = by.traits.element_bytes;
  check_buffer("allreduce", "input", in, count, each);
  check_buffer("allreduce", "output", out, count, each);
  check_aligned("allreduce", in, out, by.alignment);
  const std::size_t bytes = count * each;
  check_overlap("allreduce", in, bytes, out, bytes, out);
  prepared result{.name = "allreduce"};
  result.chosen = choose_allreduce(state.here, bytes, by.traits, state.port.settings());
  result.call = {in, out, count, each, by.combine, result.chosen.segment_bytes};
  result.call.likeness = likeness_of(call_kind::allreduce, bytes, by.digest);
  result.nothing = count == 0;  // MPI 4.0, section 6.1.1: a collective need not synchronise
  return result;
}

prepared prepare_reduce(communicator_state& state, const void* in, void* out, std::size_t count,
                        const operation_by& how, rank root) {
  const operation_by::found by = how.find(state, "reduce");
  check_root("reduce", root, state.size);
  const std::size_t each = by.traits.element_bytes;
  const std::size_t bytes = count * each;
  check_buffer("reduce", "input", in, count, each);
  if (state.self == root.value) {
    check_buffer("reduce", "output", out, count, each);
    check_aligned("reduce", in, out, by.alignment);
    check_overlap("reduce", in, bytes, out, bytes, out);
  } else {
    check_aligned("reduce", in, nullptr, by.alignment);
    out = nullptr;
  }
  prepared result{.name = "reduce", .root = root.value};
  result.chosen = choose_reduce(state.here, bytes, by.traits, state.port.settings());
  result.call = {in, out, count, each, by.combine, result.chosen.segment_bytes};
  result.call.likeness =
      likeness_of(call_kind::reduce, bytes, by.digest ^ static_cast<unsigned>(root.value) * 101);
  result.nothing = count == 0;
  return result;
}

namespace {

/// Short vectors through flagged lines, with as few questions as possible. False: not this way; nothing has
/// happened.
bool allreduce_shortly(communicator_state& state, const void* in, void* out, std::size_t count,
                       const operation_by& how) {
  if (!how.known()) return false;
  const std::size_t each = element_bytes(how.type());
  const std::size_t longest = each <= 8 ? largest_line_exchange : lines_per_exchange * 48;
  if (count - 1 >= longest / each) return false;
  const std::size_t bytes = count * each;
  const kernel combine = find_kernel(how.type(), how.how(), state.instructions);
  const auto from = reinterpret_cast<std::uintptr_t>(in);
  const auto to = reinterpret_cast<std::uintptr_t>(out);
  const bool overlapping = from != to && from < to + bytes && to < from + bytes;
  // What is wrong is worded on the long way.
  if (combine == nullptr || from == 0 || to == 0 || overlapping ||
      ((from | to) & (element_alignment(how.type()) - 1)) != 0)
    return false;
  state.refuse_if_lost("allreduce");
  const std::uint64_t likeness =
      likeness_of(call_kind::allreduce, bytes, operation_by::digest_of(how.type(), how.how()));
  const lines_end end = allreduce_in_lines(state, in, out, count, each, combine, likeness);
  if (end != lines_end::well) [[unlikely]]
    end_lines(state, end, "allreduce", likeness);
  return true;
}

}  // namespace

void allreduce(runtime::collective_port& port, const void* in, void* out, std::size_t count,
               const operation_by& how) {
  communicator_state& state = communicator_state::of(port);
  if (state.lines_for_allreduce && allreduce_shortly(state, in, out, count, how)) [[likely]]
    return;
  run(state, prepare_allreduce(state, in, out, count, how));
}

}  // namespace verbena::collectives
