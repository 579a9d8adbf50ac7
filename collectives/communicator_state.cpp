#include "collectives/communicator_state.hpp"

#include "collectives/algorithms/algorithms.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>

namespace verbena::collectives {
namespace {

node_view view_of(runtime::collective_port& port) noexcept {
  const auto block = port.block();
  return block ? node_view(block->data, block->bytes, port.size()) : node_view{};
}

surroundings surroundings_of(const runtime::collective_port& port, const node_view& node) noexcept {
  surroundings here;
  here.size = port.size();
  here.node = node.valid();
  here.slot_bytes = node.slot_bytes();
  // Of the node, not of this process's mask: all members must choose alike.
  here.cores = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return here;
}

algorithm algorithm_of(method how) noexcept {
  constexpr std::array<algorithm, methods> all = {allreduce_recursive_doubling,   allreduce_ring,
                                                  allreduce_node_exchange,        allreduce_node_slices,
                                                  allreduce_node_gathered_slices, allreduce_node_gathering,
                                                  barrier_dissemination,          barrier_node_exchange,
                                                  barrier_node_gathering};
  return all[static_cast<std::size_t>(how)];
}

}  // namespace

communicator_state::communicator_state(runtime::collective_port& with)
    : port(with),
      self(with.self().value),
      size(with.size()),
      node(view_of(with)),
      here(surroundings_of(with, node)),
      instructions(best_instruction_set()),
      wait(with, node, here.size > here.cores) {
  // Forced algorithms that do not exist here are refused at the call, so that only those who call them hear
  // of it.
  if (size > 1 && node.valid()) {
    const base::settings& forced = port.settings();
    lines_for_allreduce =
        (forced.allreduce == "auto" || forced.allreduce == "node") && choose_allreduce(here, 1, forced).lines;
    lines_for_barrier =
        (forced.barrier == "auto" || forced.barrier == "node") && choose_barrier(here, forced).lines;
  }
}

execution& communicator_state::idle(method how) {
  auto& known = executions_[static_cast<std::size_t>(how)];
  for (const auto& one : known)
    if (one->usable()) return *one;
  known.push_back(std::make_unique<execution>(*this, algorithm_of(how)(self, size, {})));
  return *known.back();
}

bool communicator_state::busy() const noexcept {
  for (const auto& known : executions_)
    for (const auto& one : known)
      if (!one->done()) return true;
  return false;
}

void communicator_state::run(method how, const work& call, std::string_view what) {
  refuse_if_lost(what);
  execution& one = idle(how);
  one.start(call);
  for (;;) {
    one.advance();
    if (one.done()) break;
    one.wait();
  }
  if (one.error() == errc::success) return;
  const auto [why, culprit] = cause(one.error(), one.culprit());
  lost(what, why, culprit);
}

/// A message may fail only because its other end gave up after a death that we have not heard of yet, and took its
/// buffer with it. So what is no loss by itself waits a moment for the news.
std::pair<errc, int> communicator_state::cause(errc seen, int culprit) noexcept {
  if (seen == errc::peer_failed || seen == errc::peer_left || seen == errc::aborted) return {seen, culprit};
  struct moment {
    runtime::collective_port& port;
    base::nanoseconds until;
  } news{port, base::steady_now() + 200 * base::millisecond};
  const bool well = port.wait_until(
      [](void* argument) noexcept {
        const auto& m = *static_cast<moment*>(argument);
        return m.port.departed_member().has_value() || base::steady_now() > m.until;
      },
      &news);
  if (!well || port.departed_member().has_value()) return loss();
  return {seen, culprit};
}

std::pair<errc, int> communicator_state::loss() const noexcept {
  if (const auto dead = port.failed_member()) return {errc::peer_failed, dead->value};
  if (const auto gone = port.departed_member()) return {errc::peer_left, gone->value};
  return {errc::aborted, -1};
}

void communicator_state::lost(std::string_view call, errc why, int culprit) {
  const std::string what = port.name().empty() ? std::string(call) : fmt::format("{} on '{}'", call, port.name());
  if (why == errc::peer_failed || why == errc::peer_left || why == errc::aborted) {
    lost_ = why;
    culprit_ = culprit;
  }
  if (why == errc::peer_failed)
    throw error(why,
                fmt::format("{}: rank {} of this communicator of {} is gone; rank {} gave up waiting for it",
                            what, culprit, size, self));
  if (why == errc::peer_left)
    throw error(
        why, fmt::format("{}: rank {} of this communicator of {} has left the job, and rank {} still needed "
                         "it; all ranks must make the same collective calls",
                         what, culprit, size, self));
  if (why == errc::aborted)
    throw error(why, fmt::format("{}: the job is being ended; rank {} gave up", what, self));
  throw error(why, fmt::format("{}: the message with rank {} failed at rank {}: {}", what, culprit, self,
                               make_error_code(why).message()));
}

}  // namespace verbena::collectives
