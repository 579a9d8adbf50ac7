// Gather, scatter, allgather and all-to-all with equal blocks (MPI 4.0, sections 6.5 to 6.8). The rules for
// all collectives stand in verbena/collectives.hpp. Below, n is the number of ranks; a buffer of n blocks
// holds them one behind the other, rank 0's first. `block_bytes` is the same on all ranks.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>
#include <verbena/reduce.hpp>

#include <cstddef>
#include <ranges>
#include <string>

namespace verbena {

/// Every rank's block `in` becomes a block of the root's `out` (n blocks; elsewhere not looked at). In place
/// at the root: `in` is the root's own block in `out`. MPI_Gather, MPI_Igather, MPI_Gather_init.
VERBENA_API void gather(communicator on, const void* in, void* out, std::size_t block_bytes, rank root);
VERBENA_API request igather(communicator on, const void* in, void* out, std::size_t block_bytes, rank root);
VERBENA_API persistent_request gather_init(communicator on, const void* in, void* out,
                                           std::size_t block_bytes, rank root);

/// Each block of the root's `in` (n blocks; elsewhere not looked at) goes to the rank it belongs to, into
/// `out` (one block). In place at the root: `out` is the root's own block in `in`. MPI_Scatter, MPI_Iscatter,
/// MPI_Scatter_init.
VERBENA_API void scatter(communicator on, const void* in, void* out, std::size_t block_bytes, rank root);
VERBENA_API request iscatter(communicator on, const void* in, void* out, std::size_t block_bytes, rank root);
VERBENA_API persistent_request scatter_init(communicator on, const void* in, void* out,
                                            std::size_t block_bytes, rank root);

/// Every rank's block `in` becomes a block of every rank's `out` (n blocks). In place, at any rank: `in` is
/// the rank's own block in `out`. MPI_Allgather, MPI_Iallgather, MPI_Allgather_init.
VERBENA_API void allgather(communicator on, const void* in, void* out, std::size_t block_bytes);
VERBENA_API request iallgather(communicator on, const void* in, void* out, std::size_t block_bytes);
VERBENA_API persistent_request allgather_init(communicator on, const void* in, void* out,
                                              std::size_t block_bytes);

/// Block r of the input (n blocks) goes to rank r, where it becomes the block of the sender in `out` (n
/// blocks). In place, on all ranks or none: `in` is `out`. MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init.
VERBENA_API void alltoall(communicator on, const void* in, void* out, std::size_t block_bytes);
VERBENA_API request ialltoall(communicator on, const void* in, void* out, std::size_t block_bytes);
VERBENA_API persistent_request alltoall_init(communicator on, const void* in, void* out,
                                             std::size_t block_bytes);

namespace detail {
/// Bytes of a block; `all`, where it counts, holds n of `one`.
template <class One, class All>
std::size_t block_of(const char* call, communicator on, const One& one, const All& all, bool counts) {
  if (counts && std::ranges::size(all) != std::ranges::size(one) * static_cast<std::size_t>(on.size()))
    throw error(errc::invalid_argument, std::string(call) + ": the buffer for all ranks holds " +
                                            std::to_string(std::ranges::size(all)) + " elements, not " +
                                            std::to_string(on.size()) + " times " +
                                            std::to_string(std::ranges::size(one)));
  return std::ranges::size(one) * sizeof(std::ranges::range_value_t<One>);
}
template <class In, class Out>
std::size_t gathered(const char* call, communicator on, const In& in, const Out& out, bool counts) {
  return block_of(call, on, in, out, counts);
}
template <class In, class Out>
std::size_t scattered(const char* call, communicator on, const In& in, const Out& out, bool counts) {
  return block_of(call, on, out, in, counts);
}
template <class In, class Out>
std::size_t exchanged(const char* call, communicator on, const In& in, const Out& out) {
  const std::size_t count = std::ranges::size(in);
  const auto ranks = static_cast<std::size_t>(on.size());
  if (count != std::ranges::size(out) || count % ranks != 0)
    throw error(errc::invalid_argument,
                std::string(call) + ": input and output hold " + std::to_string(count) + " and " +
                    std::to_string(std::ranges::size(out)) + " elements, not equally many for each of " +
                    std::to_string(ranks) + " ranks");
  return count / ranks * sizeof(std::ranges::range_value_t<In>);
}
}  // namespace detail

// Ranges of equal elements. The range of one block says how long a block is; that of n blocks is n times as
// long.
template <message_range In, message_range Out>
requires same_elements<In, Out>
void gather(communicator on, const In& in, Out&& out, rank root) {
  gather(on, std::ranges::data(in), std::ranges::data(out),
         detail::gathered("gather", on, in, out, on.rank() == root), root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> request igather(communicator on, const In& in, Out&& out, rank root) {
  return igather(on, std::ranges::data(in), std::ranges::data(out),
                 detail::gathered("gather", on, in, out, on.rank() == root), root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> persistent_request gather_init(communicator on, const In& in, Out&& out,
                                                               rank root) {
  return gather_init(on, std::ranges::data(in), std::ranges::data(out),
                     detail::gathered("gather", on, in, out, on.rank() == root), root);
}

template <message_range In, message_range Out>
requires same_elements<In, Out>
void scatter(communicator on, const In& in, Out&& out, rank root) {
  scatter(on, std::ranges::data(in), std::ranges::data(out),
          detail::scattered("scatter", on, in, out, on.rank() == root), root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> request iscatter(communicator on, const In& in, Out&& out, rank root) {
  return iscatter(on, std::ranges::data(in), std::ranges::data(out),
                  detail::scattered("scatter", on, in, out, on.rank() == root), root);
}
template <message_range In, message_range Out>
requires same_elements<In, Out> persistent_request scatter_init(communicator on, const In& in, Out&& out,
                                                                rank root) {
  return scatter_init(on, std::ranges::data(in), std::ranges::data(out),
                      detail::scattered("scatter", on, in, out, on.rank() == root), root);
}

template <message_range In, message_range Out>
requires same_elements<In, Out>
void allgather(communicator on, const In& in, Out&& out) {
  allgather(on, std::ranges::data(in), std::ranges::data(out),
            detail::gathered("allgather", on, in, out, true));
}
template <message_range In, message_range Out>
requires same_elements<In, Out> request iallgather(communicator on, const In& in, Out&& out) {
  return iallgather(on, std::ranges::data(in), std::ranges::data(out),
                    detail::gathered("allgather", on, in, out, true));
}
template <message_range In, message_range Out>
requires same_elements<In, Out> persistent_request allgather_init(communicator on, const In& in, Out&& out) {
  return allgather_init(on, std::ranges::data(in), std::ranges::data(out),
                        detail::gathered("allgather", on, in, out, true));
}

template <message_range In, message_range Out>
requires same_elements<In, Out>
void alltoall(communicator on, const In& in, Out&& out) {
  alltoall(on, std::ranges::data(in), std::ranges::data(out), detail::exchanged("alltoall", on, in, out));
}
template <message_range In, message_range Out>
requires same_elements<In, Out> request ialltoall(communicator on, const In& in, Out&& out) {
  return ialltoall(on, std::ranges::data(in), std::ranges::data(out),
                   detail::exchanged("alltoall", on, in, out));
}
template <message_range In, message_range Out>
requires same_elements<In, Out> persistent_request alltoall_init(communicator on, const In& in, Out&& out) {
  return alltoall_init(on, std::ranges::data(in), std::ranges::data(out),
                       detail::exchanged("alltoall", on, in, out));
}

}  // namespace verbena
