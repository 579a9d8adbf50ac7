// Barrier, broadcast, gather, scatter, allgather, all-to-all: checked and chosen. They move bytes and know no
// elements.
#include "collectives/arguments.hpp"
#include "collectives/calls.hpp"
#include "collectives/line_exchange.hpp"

namespace verbena::collectives {
namespace {

work moving(const void* in, void* out, std::size_t bytes, const choice& chosen, call_kind what,
            unsigned digest = 0) {
  work call{in, out, bytes, 1, {}, chosen.segment_bytes};
  call.likeness = likeness_of(what, bytes, digest);
  return call;
}

unsigned digest_of(rank root) noexcept {
  return static_cast<unsigned>(root.value);
}

/// Where a block lies that is in its place among all, for calls in place.
const void* block_in(const void* all, int of, std::size_t bytes) noexcept {
  return static_cast<const std::byte*>(all) + static_cast<std::size_t>(of) * bytes;
}

std::size_t blocks_of(const communicator_state& state) noexcept {
  return static_cast<std::size_t>(state.size);
}

}  // namespace

prepared prepare_barrier(communicator_state& state) {
  prepared result{.name = "barrier"};
  result.chosen = choose_barrier(state.here, state.port.settings());
  result.call.likeness = likeness_of(call_kind::barrier, 0, 0);
  result.nothing = state.size == 1;
  return result;
}

prepared prepare_broadcast(communicator_state& state, void* data, std::size_t bytes, rank root) {
  check_root("broadcast", root, state.size);
  check_buffer("broadcast", "buffer", data, bytes, 1);
  prepared result{.name = "broadcast", .root = root.value};
  result.chosen = choose_broadcast(state.here, bytes, state.port.settings());
  result.call = moving(data, data, bytes, result.chosen, call_kind::broadcast, digest_of(root));
  result.nothing = bytes == 0 || state.size == 1;
  return result;
}

prepared prepare_gather(communicator_state& state, const void* in, void* out, std::size_t block_bytes,
                        rank root) {
  check_root("gather", root, state.size);
  check_buffer("gather", "input", in, block_bytes, 1);
  if (state.self == root.value) {
    check_buffer("gather", "output", out, block_bytes, blocks_of(state));
    check_overlap("gather", in, block_bytes, out, block_bytes * blocks_of(state),
                  block_in(out, state.self, block_bytes));
  }
  prepared result{.name = "gather", .root = root.value};
  result.chosen = choose_gather(state.here, block_bytes, state.port.settings());
  result.call = moving(in, out, block_bytes, result.chosen, call_kind::gather, digest_of(root));
  result.nothing = block_bytes == 0;
  return result;
}

prepared prepare_scatter(communicator_state& state, const void* in, void* out, std::size_t block_bytes,
                         rank root) {
  check_root("scatter", root, state.size);
  check_buffer("scatter", "output", out, block_bytes, 1);
  if (state.self == root.value) {
    check_buffer("scatter", "input", in, block_bytes, blocks_of(state));
    if (out != block_in(in, state.self, block_bytes))
      check_overlap("scatter", in, block_bytes * blocks_of(state), out, block_bytes, nullptr);
  }
  prepared result{.name = "scatter", .root = root.value};
  result.chosen = choose_scatter(state.here, block_bytes, state.port.settings());
  result.call = moving(in, out, block_bytes, result.chosen, call_kind::scatter, digest_of(root));
  result.nothing = block_bytes == 0;
  return result;
}

prepared prepare_allgather(communicator_state& state, const void* in, void* out, std::size_t block_bytes) {
  check_buffer("allgather", "input", in, block_bytes, 1);
  check_buffer("allgather", "output", out, block_bytes, blocks_of(state));
  check_overlap("allgather", in, block_bytes, out, block_bytes * blocks_of(state),
                block_in(out, state.self, block_bytes));
  prepared result{.name = "allgather"};
  result.chosen = choose_allgather(state.here, block_bytes, state.port.settings());
  result.call = moving(in, out, block_bytes, result.chosen, call_kind::allgather);
  result.nothing = block_bytes == 0;
  return result;
}

prepared prepare_alltoall(communicator_state& state, const void* in, void* out, std::size_t block_bytes) {
  const std::size_t all = blocks_of(state);
  check_buffer("alltoall", "input", in, block_bytes, all);
  check_buffer("alltoall", "output", out, block_bytes, all);
  check_overlap("alltoall", in, block_bytes * all, out, block_bytes * all, out);
  prepared result{.name = "alltoall"};
  const bool in_place = in == out;
  result.chosen = choose_alltoall(state.here, block_bytes, in_place, state.port.settings());
  result.call = moving(in, out, block_bytes, result.chosen, call_kind::alltoall, in_place ? 1 : 0);
  result.nothing = block_bytes == 0;
  return result;
}

void barrier(runtime::collective_port& port) {
  communicator_state& state = communicator_state::of(port);
  if (state.lines_for_barrier) [[likely]] {
    state.refuse_if_lost("barrier");
    if (const lines_end end = barrier_in_lines(state); end != lines_end::well) [[unlikely]]
      end_lines(state, end, "barrier", likeness_of(call_kind::barrier, 0, 0));
    return;
  }
  run(state, prepare_barrier(state));
}

}  // namespace verbena::collectives
