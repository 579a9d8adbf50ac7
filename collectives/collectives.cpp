#include "collectives/calls.hpp"

#include <verbena/collectives.hpp>

#include <cstring>
#include <string_view>

namespace verbena {

using namespace collectives;

namespace {
communicator_state& state_of(const communicator& on) {
  return communicator_state::of(on.port());
}

/// Calls with the communicator's memory for one value instead of the caller's; `results`: this rank gets one.
template <class Call>
void on_copy(communicator_state& state, std::string_view what, void* value, std::size_t bytes, bool results,
             Call&& call) {
  state.refuse_if_lost(what);
  communicator_state::one_value& at = state.value();
  std::memcpy(at.in, value, bytes);
  try {
    call(at.in, at.out);
  } catch (...) {
    state.keep_value();
    throw;
  }
  if (results) std::memcpy(value, at.out, bytes);
}
}  // namespace

void barrier(communicator on) {
  const runtime::entrance inside(on.port().doors());
  collectives::barrier(on.port());
}
request ibarrier(communicator on) {
  const runtime::entrance inside(on.port().doors());
  return start(state_of(on), prepare_barrier(state_of(on)));
}
persistent_request barrier_init(communicator on) {
  const runtime::entrance inside(on.port().doors());
  return keep(state_of(on), prepare_barrier(state_of(on)));
}

void allreduce(communicator on, const void* in, void* out, std::size_t count, element type, reduction how) {
  const runtime::entrance inside(on.port().doors());
  collectives::allreduce(on.port(), in, out, count, type, how);
}
void allreduce(communicator on, const void* in, void* out, std::size_t count, const custom_reduction& how) {
  const runtime::entrance inside(on.port().doors());
  collectives::allreduce(on.port(), in, out, count, how);
}
request iallreduce(communicator on, const void* in, void* out, std::size_t count, element type,
                   reduction how) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_allreduce(state_of(on), in, out, count, {type, how}));
}
persistent_request allreduce_init(communicator on, const void* in, void* out, std::size_t count, element type,
                                  reduction how) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_allreduce(state_of(on), in, out, count, {type, how}));
}
request iallreduce(communicator on, const void* in, void* out, std::size_t count,
                   const custom_reduction& how) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_allreduce(state_of(on), in, out, count, how));
}
persistent_request allreduce_init(communicator on, const void* in, void* out, std::size_t count,
                                  const custom_reduction& how) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_allreduce(state_of(on), in, out, count, how));
}

void detail::allreduce_value(communicator on, void* value, std::size_t bytes, element type, reduction how) {
  const runtime::entrance inside(on.port().doors());
  on_copy(state_of(on), "allreduce", value, bytes, true, [&](const void* in, void* out) {
    collectives::allreduce(on.port(), in, out, 1, type, how);
  });
}
void detail::reduce_value(communicator on, void* value, std::size_t bytes, element type, reduction how, rank root) {
  const runtime::entrance inside(on.port().doors());
  on_copy(state_of(on), "reduce", value, bytes, on.rank() == root, [&](const void* in, void* out) {
    collectives::run(state_of(on), prepare_reduce(state_of(on), in, out, 1, {type, how}, root));
  });
}

void reduce(communicator on, const void* in, void* out, std::size_t count, element type, reduction how,
            rank root) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_reduce(state_of(on), in, out, count, {type, how}, root));
}
request ireduce(communicator on, const void* in, void* out, std::size_t count, element type, reduction how,
                rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_reduce(state_of(on), in, out, count, {type, how}, root));
}
persistent_request reduce_init(communicator on, const void* in, void* out, std::size_t count, element type,
                               reduction how, rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_reduce(state_of(on), in, out, count, {type, how}, root));
}
void reduce(communicator on, const void* in, void* out, std::size_t count, const custom_reduction& how,
            rank root) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_reduce(state_of(on), in, out, count, how, root));
}
request ireduce(communicator on, const void* in, void* out, std::size_t count, const custom_reduction& how,
                rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_reduce(state_of(on), in, out, count, how, root));
}
persistent_request reduce_init(communicator on, const void* in, void* out, std::size_t count,
                               const custom_reduction& how, rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_reduce(state_of(on), in, out, count, how, root));
}

void broadcast(communicator on, void* data, std::size_t bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_broadcast(state_of(on), data, bytes, root));
}
request ibroadcast(communicator on, void* data, std::size_t bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_broadcast(state_of(on), data, bytes, root));
}
persistent_request broadcast_init(communicator on, void* data, std::size_t bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_broadcast(state_of(on), data, bytes, root));
}

void gather(communicator on, const void* in, void* out, std::size_t block_bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_gather(state_of(on), in, out, block_bytes, root));
}
request igather(communicator on, const void* in, void* out, std::size_t block_bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_gather(state_of(on), in, out, block_bytes, root));
}
persistent_request gather_init(communicator on, const void* in, void* out, std::size_t block_bytes,
                               rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_gather(state_of(on), in, out, block_bytes, root));
}

void scatter(communicator on, const void* in, void* out, std::size_t block_bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_scatter(state_of(on), in, out, block_bytes, root));
}
request iscatter(communicator on, const void* in, void* out, std::size_t block_bytes, rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_scatter(state_of(on), in, out, block_bytes, root));
}
persistent_request scatter_init(communicator on, const void* in, void* out, std::size_t block_bytes,
                                rank root) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_scatter(state_of(on), in, out, block_bytes, root));
}

void allgather(communicator on, const void* in, void* out, std::size_t block_bytes) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_allgather(state_of(on), in, out, block_bytes));
}
request iallgather(communicator on, const void* in, void* out, std::size_t block_bytes) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_allgather(state_of(on), in, out, block_bytes));
}
persistent_request allgather_init(communicator on, const void* in, void* out, std::size_t block_bytes) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_allgather(state_of(on), in, out, block_bytes));
}

void alltoall(communicator on, const void* in, void* out, std::size_t block_bytes) {
  const runtime::entrance inside(on.port().doors());
  collectives::run(state_of(on), prepare_alltoall(state_of(on), in, out, block_bytes));
}
request ialltoall(communicator on, const void* in, void* out, std::size_t block_bytes) {
  const runtime::entrance inside(on.port().doors());
  return collectives::start(state_of(on), prepare_alltoall(state_of(on), in, out, block_bytes));
}
persistent_request alltoall_init(communicator on, const void* in, void* out, std::size_t block_bytes) {
  const runtime::entrance inside(on.port().doors());
  return collectives::keep(state_of(on), prepare_alltoall(state_of(on), in, out, block_bytes));
}

}  // namespace verbena
