// What the collectives keep per communicator, made at its first collective and freed with it: the view of the
// node block and this member's position in it, and idle executions, kept for the next call.
#pragma once

#include "collectives/choose.hpp"
#include "collectives/executor.hpp"
#include "collectives/node_block.hpp"
#include "collectives/node_wait.hpp"
#include "collectives/started_call.hpp"
#include "runtime/collective_port.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
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
  execution& idle(method how, int root = 0);
  /// Runs a call to its end. Throws error{peer_failed, ...} in the name of `what`.
  void run(method how, const work& call, std::string_view what, int root = 0);
  /// Words how a call of `one` ended, and throws.
  [[noreturn]] void raise(const execution& one, std::string_view what);

  /// Begins a call: gives it its number, and says to the other members of the node what it is. Every
  /// collective call does this once, in the order in which they are made.
  std::uint64_t announce(std::uint64_t likeness) noexcept {
    const std::uint64_t number = ++numbered;
    // Relaxed: whoever compares either sees what this call publishes later, or waits and looks again.
    if (node.valid())
      node.member(self).announced[number % announced_words].store(announcement_of(number, likeness),
                                                                  std::memory_order_relaxed);
    return number;
  }
  /// True if `member` is known to have begun the call with this number otherwise.
  bool differs(int member, std::uint64_t number, std::uint64_t likeness) const noexcept {
    if (!node.valid() || number == 0) return false;
    const std::uint64_t theirs =
        node.member(member).announced[number % announced_words].load(std::memory_order_relaxed);
    return theirs != announcement_of(number, likeness) && theirs >> 48 == (number & 0xffff) && theirs != 0;
  }
  /// Of an announcement_watch that looks at words of the block.
  unsigned patience() const noexcept {
    return here.size > here.cores ? announcement_watch::short_patience : announcement_watch::long_patience;
  }
  /// The sentence for it.
  std::string difference(int member, std::uint64_t number, std::uint64_t likeness) const;

  /// Makes progress until ready(). False: a member is dead.
  template <class Ready>
  bool wait_until(Ready& ready) {
    return port.wait_until([](void* argument) noexcept { return bool((*static_cast<Ready*>(argument))()); },
                           &ready);
  }
  /// Why a wait has ended for good, and whose absence it is (-1: unknown).
  std::pair<errc, int> loss() const noexcept;
  std::pair<errc, int> cause(errc seen, int culprit) noexcept;
  /// Throws what `run` throws when a member is dead; from then on the node block is out of step, and every
  /// further call fails the same way.
  [[noreturn]] void lost(std::string_view what, errc why, int culprit, const std::string& detail = {});
  /// Further calls fail the same way, if it was not just one message.
  void note_loss(errc why, int culprit) noexcept {
    if (why != errc::peer_failed && why != errc::peer_left && why != errc::aborted) return;
    lost_ = why;
    culprit_ = culprit;
  }
  void refuse_if_lost(std::string_view what) {
    if (lost_ != errc::success) [[unlikely]]
      lost(what, lost_, culprit_);
  }

  /// Memory of the library's own that a failed call may still use, at members that live: stays as long as the
  /// communicator.
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }
  /// For blocking calls on one value: its copy, and its result. The caller's are on a stack, which a call that fails
  /// leaves while members that live may still use its buffers.
  struct one_value {
    alignas(64) std::byte in[64];
    alignas(64) std::byte out[64];
  };
  one_value& value() {
    if (!value_) value_ = std::make_shared<one_value>();
    return *value_;
  }
  /// After a call with it failed: the next one gets another.
  void keep_value() { keep(std::exchange(value_, nullptr)); }

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
  std::uint64_t numbered = 0;       ///< collective calls so far
  int unlike = -1;                  ///< the member whose call did not fit, if an exchange in lines found one
  errc block_lost = errc::success;  ///< the node block is out of step: why, and whose fault
  int block_culprit = -1;

  requests_pool requests;  ///< handles given out for calls under way (started_call.hpp)

  // The choice for calls short enough for flagged lines, made once.
  bool lines_for_allreduce = false;
  bool lines_for_barrier = false;

 private:
  struct kept {
    int root;
    std::unique_ptr<execution> one;
  };
  std::array<std::vector<kept>, methods> executions_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::shared_ptr<one_value> value_;
  errc lost_ = errc::success;
  int culprit_ = -1;
};

}  // namespace verbena::collectives
