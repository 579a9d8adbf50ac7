// Collective calls behind request handles: started ones, and persistent ones. Both run their execution as a
// task of the port, so that any wait of this context moves them.
//
// Order. All members start their calls on a communicator in the same order. Message schedules are independent
// of each other (each call has its own label). Those on the node block take turns in the order of their
// starts, and the one whose turn it is advances in every wait, whoever waits for what; so waiting in any
// order, or making a blocking call in between, cannot hold up another call for ever.
#pragma once

#include "collectives/choose.hpp"
#include "collectives/executor.hpp"
#include "runtime/collective_port.hpp"

#include <deque>
#include <list>
#include <string_view>

namespace verbena::collectives {

class communicator_state;

/// A call whose arguments are checked and whose algorithm is chosen.
struct prepared {
  std::string_view name;
  choice chosen{};
  work call{};
  int root = 0;
  bool nothing = false;  ///< no elements: every rank knows that there is nothing to do
};

/// The work behind the request of one started call. Taken from a pool, goes back when the handle lets go.
class started_call final : public runtime::pending_work {
 public:
  explicit started_call(communicator_state& home) noexcept : home_(home) {}
  void begin(execution& one, const prepared& what) noexcept;

  [[noreturn]] void raise() const override;
  void release() noexcept override;

  bool used = false;

 private:
  communicator_state& home_;
  execution* one_ = nullptr;
  std::string_view name_;
};

/// A persistent call owns its execution, so starting it allocates nothing after the first time.
class persistent_call final : public runtime::persistent_work {
 public:
  persistent_call(communicator_state& home, const prepared& what);

  void start() override;
  [[noreturn]] void raise() const override;
  void destroy() noexcept override { dropped_ = true; }
  /// Its handle is gone, and no operation of it is in anybody's hands.
  bool forgettable() const noexcept { return dropped_ && !one_.lost(); }
  bool dropped() const noexcept { return dropped_; }

 private:
  communicator_state& home_;
  prepared what_;
  execution one_;
  bool dropped_ = false;  ///< perhaps by the end of `one_`, so it cannot go at once
};

/// Owned by the communicator's state; ends with it.
class requests_pool {
 public:
  started_call& take(communicator_state& home);
  persistent_call& keep(communicator_state& home, const prepared& what);
  /// Some call that was started or kept has not ended, or somebody has a handle of it.
  bool busy() const noexcept;

 private:
  std::deque<started_call> started_;
  std::list<persistent_call> persistent_;
};

/// Runs to the end; starts; keeps for starting.
void run(communicator_state& home, const prepared& what);
request start(communicator_state& home, const prepared& what);
persistent_request keep(communicator_state& home, const prepared& what);

}  // namespace verbena::collectives
