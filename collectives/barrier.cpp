#include "collectives/calls.hpp"
#include "collectives/communicator_state.hpp"
#include "collectives/line_exchange.hpp"

namespace verbena::collectives {

void barrier(runtime::collective_port& port) {
  communicator_state& state = communicator_state::of(port);
  if (state.lines_for_barrier) [[likely]] {
    state.refuse_if_lost("barrier");
    if (barrier_in_lines(state)) [[likely]]
      return;
    const auto [why, who] = state.loss();
    state.lost("barrier", why, who);
  }
  if (state.size == 1) return;
  state.run(choose_barrier(state.here, port.settings()).how, {}, "barrier");
}

}  // namespace verbena::collectives
