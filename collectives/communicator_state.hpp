// What the collectives keep per communicator, made at its first collective and freed with it: the view of the
// node block and this member's position in it, and one idle execution per method, kept for the next call.
#pragma once

#include "collectives/choose.hpp"
#include "collectives/executor.hpp"
#include "collectives/node_block.hpp"
#include "collectives/node_wait.hpp"
#include "runtime/collective_port.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace verbena::collectives {

class communicator_state final : public runtime::extension {
 public:
  explicit communicator_state(runtime::collective_port& port);
  static communicator_state& of(runtime::collective_port& port) {
    auto& slot = port.slot();
    if (slot == nullptr) [[unlikely]]
      slot = std::make_unique<communicator_state>(port);
    return static_cast<communicator_state&>(*slot);
  }

  bool busy() const noexcept override;

  /// An execution that is not running, made if need be.
  execution& idle(method how);
  /// Runs a call to its end. Throws error{peer_failed, ...} in the name of `what`.
  void run(method how, const work& call, std::string_view what);
  /// Why a wait has ended for good, and whose absence it is (-1: unknown).
  std::pair<errc, int> loss() const noexcept;
  std::pair<errc, int> cause(errc seen, int culprit) noexcept;
  /// Throws what `run` throws when a member is dead; from then on the node block is out of step, and every
  /// further call fails the same way.
  [[noreturn]] void lost(std::string_view what, errc why, int culprit);
  void refuse_if_lost(std::string_view what) {
    if (lost_ != errc::success) [[unlikely]]
      lost(what, lost_, culprit_);
  }

  runtime::collective_port& port;
  const int self;
  const int size;
  const node_view node;
  const surroundings here;
  const instruction_set instructions;
  node_wait wait;

  // This member's position, the same at all members between calls (all make the same calls in the same
  // order).
  std::uint64_t exchanges = 0;   ///< in flagged lines
  std::uint64_t turns = 0;       ///< repetitions on the node, so far
  std::uint64_t progress = 0;    ///< own `publish` steps
  std::uint64_t gatherings = 0;  ///< arrived at
  std::uint32_t calls = 0;       ///< by messages: makes the label
  std::uint64_t tickets = 0;     ///< executions on the node block take turns, in the order of their starts
  std::uint64_t serving = 0;

  // The choice for calls short enough for flagged lines, made once.
  bool lines_for_allreduce = false;
  bool lines_for_barrier = false;

 private:
  std::array<std::vector<std::unique_ptr<execution>>, methods> executions_;
  errc lost_ = errc::success;
  int culprit_ = -1;
};

}  // namespace verbena::collectives
