// What the runtime offers to the collectives layer for one communicator, and all that layer sees of the
// engine: messages in the communicator's second context (they never match point-to-point ones), the shared
// block of the node, progress, waiting. Abstract, so that schedules can be executed on a fake. Not for
// programs.
#pragma once

#include "base/clock.hpp"
#include "base/settings.hpp"
#include "runtime/gate.hpp"
#include "runtime/pending_work.hpp"
#include "transport/operation.hpp"

#include <verbena/request.hpp>
#include <verbena/types.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace verbena::runtime {

using transport::operation;

/// What a layer above keeps per communicator (cached schedules, position in the node block); freed with it.
struct extension {
  virtual ~extension() = default;
  /// True while a collective is under way: a communicator that was freed waits for that.
  virtual bool busy() const noexcept { return false; }
};

/// Something that advances on every tick while it is linked: a collective in flight. Links itself by
/// `add_task`, unlinks itself.
struct progress_task : base::list_link {
  virtual ~progress_task() = default;
  /// Returns true if something moved. Must not block.
  virtual bool advance() noexcept = 0;
};

/// Shared memory that all members of a communicator map, zero at first. Absent unless all of them are on this
/// node.
struct node_block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

class collective_port {
 public:
  virtual ~collective_port() = default;

  virtual rank self() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Processors that the ranks of this node share: the launcher's count, the same for all of them.
  virtual unsigned cores() const noexcept = 0;
  virtual const base::settings& settings() const noexcept = 0;
  /// What the communicator is called in errors; empty if it has no name.
  virtual std::string_view name() const noexcept { return {}; }
  virtual std::optional<node_block> block() const noexcept = 0;

  /// Posts; the operation must be idle, and stays the caller's until done. Never blocks, never throws: errors
  /// arrive in the operation. May complete it at once.
  virtual void send(operation& op, const void* data, std::size_t bytes, rank to, tag label) noexcept = 0;
  virtual void receive(operation& op, void* data, std::size_t bytes, rank from, tag label) noexcept = 0;

  /// Gives up a pending operation of a collective that is abandoned because a member died: afterwards it is done
  /// (errc::cancelled), linked nowhere, and its buffer is not touched any more. False: that is not possible (now);
  /// then the operation stays pending, and its owner keeps it until the communicator goes.
  virtual bool withdraw(operation& op) noexcept {
    static_cast<void>(op);
    return false;
  }

  /// One tick: polls fabrics, answers, tasks. True if something moved.
  virtual bool progress() noexcept = 0;

  /// Makes progress, and spins, yields or sleeps on the doorbell, until `ready(argument)` or the job breaks.
  /// Whoever makes it ready must ring this rank's doorbell if it sleeps (`wake`). Returns false if a member
  /// is known to be dead.
  virtual bool wait_until(bool (*ready)(void*) noexcept, void* argument) noexcept = 0;
  bool wait(operation& op) noexcept {
    return wait_until([](void* p) noexcept { return static_cast<operation*>(p)->done(); }, &op);
  }

  /// Rings a member's doorbell if it sleeps: after storing into the node block what it waits for. Cheap if it
  /// is awake.
  virtual void wake(rank member) noexcept = 0;

  /// True if no point-to-point operation of this context is pending: then a waiter may sleep on a word of the
  /// node block instead of the doorbell (a bounded time, looking at `failed_member` in between), for nobody
  /// needs its help.
  virtual bool nothing_pending() const noexcept = 0;
  /// How long spinning is worth while now; 0 when more ranks are awake than there are cores.
  virtual base::nanoseconds spin_budget() const noexcept = 0;

  /// A member known to be dead, if any.
  virtual std::optional<rank> failed_member() const noexcept = 0;
  /// A member known to have left the job in good order, if any: it has finished all its collectives, and takes part
  /// in no other. That breaks only those that still need it, so `wait_until` does not end for it.
  virtual std::optional<rank> departed_member() const noexcept { return std::nullopt; }

  /// Entered by every call of this layer; passed by loops that wait without the port.
  virtual gate& doors() noexcept = 0;

  virtual void add_task(progress_task& task) noexcept = 0;
  /// A handle for work of this layer that is under way; the handle's progress moves the tasks. The work stays the
  /// caller's memory, which learns by `release` that the handle is gone.
  virtual request hand_out(pending_work& work) noexcept = 0;
  virtual persistent_request hand_out_persistent(persistent_work& work) noexcept = 0;
  virtual std::unique_ptr<extension>& slot() noexcept = 0;
};

}  // namespace verbena::runtime
