// Reduce and allreduce (MPI 4.0, section 6.9). The rules for all collectives stand in
// verbena/collectives.hpp, operators and element types in verbena/reduction.hpp.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>
#include <verbena/reduction.hpp>

#include <cstddef>
#include <ranges>
#include <type_traits>

namespace verbena {

template <class In, class Out>
concept same_elements = std::is_same_v<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>;

namespace detail {
/// The output's memory; it must be as long as the input where it counts.
template <class In, class Out>
void* output_of(const char* call, const In& in, Out& out, bool counts) {
  if (!counts) return nullptr;
  if (std::ranges::size(in) != std::ranges::size(out))
    throw error(errc::invalid_argument, std::string(call) + ": input and output have different lengths");
  return std::ranges::data(out);
}
template <class In>
void check_element(const char* call, const custom_reduction& how) {
  if (sizeof(std::ranges::range_value_t<In>) != how.element_bytes)
    throw error(errc::invalid_argument, std::string(call) + ": the operator is for elements of another size");
}
}  // namespace detail

/// Combines `count` elements of every rank's `in` and leaves the result in every rank's `out`, with equal
/// bits. `in` may be `out` (MPI_IN_PLACE), and must not overlap it otherwise; both are aligned for the
/// element. Count, type and operator are the same on all ranks. MPI_Allreduce, MPI_Iallreduce,
/// MPI_Allreduce_init.
VERBENA_API void allreduce(communicator on, const void* in, void* out, std::size_t count, element type,
                           reduction how);
VERBENA_API void allreduce(communicator on, const void* in, void* out, std::size_t count,
                           const custom_reduction& how);
VERBENA_API request iallreduce(communicator on, const void* in, void* out, std::size_t count, element type,
                               reduction how);
VERBENA_API request iallreduce(communicator on, const void* in, void* out, std::size_t count,
                               const custom_reduction& how);
VERBENA_API persistent_request allreduce_init(communicator on, const void* in, void* out, std::size_t count,
                                              element type, reduction how);
VERBENA_API persistent_request allreduce_init(communicator on, const void* in, void* out, std::size_t count,
                                              const custom_reduction& how);

/// Combines `count` elements of every rank's `in` into the root's `out`, which nobody else needs (null). At
/// the root `in` may be `out` (MPI_IN_PLACE). MPI_Reduce, MPI_Ireduce, MPI_Reduce_init.
VERBENA_API void reduce(communicator on, const void* in, void* out, std::size_t count, element type,
                        reduction how, rank root);
VERBENA_API void reduce(communicator on, const void* in, void* out, std::size_t count,
                        const custom_reduction& how, rank root);
VERBENA_API request ireduce(communicator on, const void* in, void* out, std::size_t count, element type,
                            reduction how, rank root);
VERBENA_API request ireduce(communicator on, const void* in, void* out, std::size_t count,
                            const custom_reduction& how, rank root);
VERBENA_API persistent_request reduce_init(communicator on, const void* in, void* out, std::size_t count,
                                           element type, reduction how, rank root);
VERBENA_API persistent_request reduce_init(communicator on, const void* in, void* out, std::size_t count,
                                           const custom_reduction& how, rank root);

// Ranges of equal elements: `in` and, where there is a result, `out` are equally long. The custom operator of
// a non-blocking call is copied; its state must live until the call is over.
template <message_range In, message_range Out>
requires same_elements<In, Out> && reducible<std::ranges::range_value_t<In>>
void allreduce(communicator on, const In& in, Out&& out, reduction how = reduction::sum) {
  allreduce(on, std::ranges::data(in), detail::output_of("allreduce", in, out, true), std::ranges::size(in),
            element_of<std::ranges::range_value_t<In>>(), how);
}
template <message_range In, message_range Out>
requires same_elements<In, Out>
void allreduce(communicator on, const In& in, Out&& out, const custom_reduction& how) {
  detail::check_element<In>("allreduce", how);
  allreduce(on, std::ranges::data(in), detail::output_of("allreduce", in, out, true), std::ranges::size(in),
            how);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> && reducible<std::ranges::range_value_t<In>> request
iallreduce(communicator on, const In& in, Out&& out, reduction how = reduction::sum) {
  return iallreduce(on, std::ranges::data(in), detail::output_of("allreduce", in, out, true),
                    std::ranges::size(in), element_of<std::ranges::range_value_t<In>>(), how);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> request iallreduce(communicator on, const In& in, Out&& out,
                                                   const custom_reduction& how) {
  detail::check_element<In>("allreduce", how);
  return iallreduce(on, std::ranges::data(in), detail::output_of("allreduce", in, out, true),
                    std::ranges::size(in), how);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> && reducible<std::ranges::range_value_t<In>> persistent_request
allreduce_init(communicator on, const In& in, Out&& out, reduction how = reduction::sum) {
  return allreduce_init(on, std::ranges::data(in), detail::output_of("allreduce", in, out, true),
                        std::ranges::size(in), element_of<std::ranges::range_value_t<In>>(), how);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> persistent_request allreduce_init(communicator on, const In& in, Out&& out,
                                                                  const custom_reduction& how) {
  detail::check_element<In>("allreduce", how);
  return allreduce_init(on, std::ranges::data(in), detail::output_of("allreduce", in, out, true),
                        std::ranges::size(in), how);
}

template <message_range In, message_range Out>
requires same_elements<In, Out> && reducible<std::ranges::range_value_t<In>>
void reduce(communicator on, const In& in, Out&& out, reduction how, rank root) {
  reduce(on, std::ranges::data(in), detail::output_of("reduce", in, out, on.rank() == root),
         std::ranges::size(in), element_of<std::ranges::range_value_t<In>>(), how, root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out>
void reduce(communicator on, const In& in, Out&& out, const custom_reduction& how, rank root) {
  detail::check_element<In>("reduce", how);
  reduce(on, std::ranges::data(in), detail::output_of("reduce", in, out, on.rank() == root),
         std::ranges::size(in), how, root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> && reducible<std::ranges::range_value_t<In>> request
ireduce(communicator on, const In& in, Out&& out, reduction how, rank root) {
  return ireduce(on, std::ranges::data(in), detail::output_of("reduce", in, out, on.rank() == root),
                 std::ranges::size(in), element_of<std::ranges::range_value_t<In>>(), how, root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> request ireduce(communicator on, const In& in, Out&& out,
                                                const custom_reduction& how, rank root) {
  detail::check_element<In>("reduce", how);
  return ireduce(on, std::ranges::data(in), detail::output_of("reduce", in, out, on.rank() == root),
                 std::ranges::size(in), how, root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> && reducible<std::ranges::range_value_t<In>> persistent_request
reduce_init(communicator on, const In& in, Out&& out, reduction how, rank root) {
  return reduce_init(on, std::ranges::data(in), detail::output_of("reduce", in, out, on.rank() == root),
                     std::ranges::size(in), element_of<std::ranges::range_value_t<In>>(), how, root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> persistent_request reduce_init(communicator on, const In& in, Out&& out,
                                                               const custom_reduction& how, rank root) {
  detail::check_element<In>("reduce", how);
  return reduce_init(on, std::ranges::data(in), detail::output_of("reduce", in, out, on.rank() == root),
                     std::ranges::size(in), how, root);
}

/// One value.
namespace detail {
/// One element at `value`, replaced by the result; at most 64 bytes. In memory of the communicator's, since a member that
/// lives may use the buffers of a call that has failed.
VERBENA_API void allreduce_value(communicator on, void* value, std::size_t bytes, element type, reduction how);
VERBENA_API void reduce_value(communicator on, void* value, std::size_t bytes, element type, reduction how, rank root);
}  // namespace detail

template <reducible Type>
Type allreduce(communicator on, Type value, reduction how = reduction::sum) {
  detail::allreduce_value(on, &value, sizeof value, element_of<Type>(), how);
  return value;
}
/// One value; the result at the root, `value` itself elsewhere.
template <reducible Type>
Type reduce(communicator on, Type value, reduction how, rank root) {
  detail::reduce_value(on, &value, sizeof value, element_of<Type>(), how, root);
  return value;
}

}  // namespace verbena
