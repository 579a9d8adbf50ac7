// Memory that the ranks of this node have mapped: what lies in it is reached by them with a plain copy, and
// its words with the processor's own atomics, without a system call.
#pragma once

#include <verbena/context.hpp>
#include <verbena/export.hpp>

#include <memory_resource>

namespace verbena {

/// A resource whose buffers lie in this rank's part of the node's shared segment while there is room, and in
/// ordinary memory beyond that, for alignments above a page, and in a job that has no segment: everything
/// works with either, and is slower with the second. Between ranks that reach each other over an RDMA device the
/// buffers stay registered with it from one message to the next (`VERBENA_KEEP_REGISTERED`). A buffer of the segment is aligned to 64 bytes at least.
/// It costs more than malloc: meant for buffers that stay. Lives as long as the context, and what it gave out
/// must be back by then. One thread at a time.
///
///   std::pmr::vector<double> field(n, &memory(context));
VERBENA_API std::pmr::memory_resource& memory(const context& of) noexcept;

/// For containers: shared_allocator<double>(&memory(context)).
template <class Type>
using shared_allocator = std::pmr::polymorphic_allocator<Type>;

}  // namespace verbena
