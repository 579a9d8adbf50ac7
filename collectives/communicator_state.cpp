#include "collectives/communicator_state.hpp"

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
  here.cores = static_cast<int>(port.cores());
  return here;
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
    lines_for_allreduce = (forced.allreduce == "auto" || forced.allreduce == "node") &&
                          choose_allreduce(here, 1, {}, forced).lines;
    lines_for_barrier =
        (forced.barrier == "auto" || forced.barrier == "node") && choose_barrier(here, forced).lines;
  }
}

execution& communicator_state::idle(method how, int root) {
  constexpr std::size_t most = 16;  // a program that goes round all roots makes their lists again
  auto& known = executions_[static_cast<std::size_t>(how)];
  for (const kept& k : known)
    if (k.root == root && k.one->usable()) return *k.one;
  if (known.size() >= most)
    for (auto k = known.begin(); k != known.end(); ++k)
      if (k->one->usable()) {
        known.erase(k);
        break;
      }
  known.push_back({root, std::make_unique<execution>(*this, algorithm_of(how)(self, size, {root}))});
  return *known.back().one;
}

bool communicator_state::busy() const noexcept {
  for (const auto& known : executions_)
    for (const kept& k : known)
      if (!k.one->done() || k.one->claimed) return true;
  return requests.busy();
}

void communicator_state::run(method how, const work& call, std::string_view what, int root) {
  refuse_if_lost(what);
  execution& one = idle(how, root);
  one.start(call);
  for (;;) {
    one.advance();
    if (one.done()) break;
    one.wait();
  }
  if (one.error() != errc::success) raise(one, what);
}

void communicator_state::raise(const execution& one, std::string_view what) {
  if (one.error() == errc::mismatch) {
    const execution::lengths& bytes = one.unlike();
    // What the call was says more than what one of its messages was, where that is known.
    const bool by_message = !differs(one.culprit(), one.call().number, one.call().likeness);
    lost(what, errc::mismatch, one.culprit(),
         by_message
             ? fmt::format("its message has {} B where rank {} expects {} B", bytes.theirs, self, bytes.ours)
             : difference(one.culprit(), one.call().number, one.call().likeness));
  }
  const auto [why, culprit] = cause(one.error(), one.culprit());
  lost(what, why, culprit);
}

std::string communicator_state::difference(int member, std::uint64_t number, std::uint64_t likeness) const {
  const std::uint64_t theirs =
      node.member(member).announced[number % announced_words].load(std::memory_order_relaxed);
  if (kind_in(theirs) != kind_in(likeness)) return fmt::format("it called {}", name(kind_in(theirs)));
  if (bytes_in(theirs) != bytes_in(likeness))
    return fmt::format("it brought {} B, rank {} brought {} B", bytes_in(theirs), self, bytes_in(likeness));
  return "its root, operator or element type is another one";
}

/// A message may fail only because its other end gave up after a death that we have not heard of yet, and
/// took its buffer with it. So what is no loss by itself waits a moment for the news.
std::pair<errc, int> communicator_state::cause(errc seen, int culprit) noexcept {
  if (seen == errc::peer_failed || seen == errc::aborted) return {seen, culprit};
  if (seen != errc::peer_left) {
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
    if (!well) return loss();
    const auto gone = port.departed_member();
    if (!gone) return {seen, culprit};
    seen = errc::peer_left;
    culprit = gone->value;
  }
  // A death may be the reason for a leaving that is heard of first: the launcher hears of the two from two sides, and from another
  // host a rank says itself that it leaves. Looks, since a wait could sleep for longer.
  const base::nanoseconds until = base::steady_now() + 300 * base::millisecond;
  while (!port.failed_member() && base::steady_now() < until) {
    port.progress();
    ::usleep(500);
  }
  return port.failed_member() ? loss() : std::pair{seen, culprit};
}

std::pair<errc, int> communicator_state::loss() const noexcept {
  if (const auto dead = port.failed_member()) return {errc::peer_failed, dead->value};
  if (const auto gone = port.departed_member()) return {errc::peer_left, gone->value};
  return {errc::aborted, -1};
}

void communicator_state::lost(std::string_view call, errc why, int culprit, const std::string& detail) {
  const std::string what = port.name().empty() ? std::string(call) : fmt::format("{} on '{}'", call, port.name());
  note_loss(why, culprit);
  if (why == errc::mismatch)
    throw error(
        why,
        fmt::format("{}: rank {} of this communicator of {} made a call that does not fit: {}; all ranks "
                    "must make the same collective calls, in the same order, with arguments that agree",
                    what, culprit, size, detail.empty() ? "see what it reports" : detail));
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
