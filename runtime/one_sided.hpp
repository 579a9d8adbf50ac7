// What stands behind the public one-sided calls: registrations, and the accesses that requests stand for.
// Internal.
#pragma once

#include "runtime/engine/engine.hpp"
#include "runtime/gate.hpp"
#include "runtime/pending_work.hpp"

#include <verbena/one_sided.hpp>

#include <cstdint>
#include <deque>

namespace verbena::runtime {

class communicator_state;

/// Memory that is reachable: in the engine's own table, and in that of the fabric that leads to the others,
/// if it took it.
struct registration {
  registration(engine& of, transport::routed_fabric& fabric, gate& doors, transport::buffer memory);
  ~registration();
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

  engine& owner;
  gate& doors_of_owner;
  transport::remote_key own;
  transport::routed_fabric::region native;
};

/// Public keys hold two: the fabric's and the engine's, of the same range.
class key_codec {
 public:
  static remote_key join(const transport::remote_key& own, const transport::remote_key& native) noexcept;
  static transport::remote_key own(const remote_key& key) noexcept;
  static transport::remote_key native(const remote_key& key) noexcept;
  static region hold(std::unique_ptr<registration> made) noexcept;
};

/// An access behind a request; lives in the pool of its context.
struct one_sided_work final : pending_work {
  communicator_state* on = nullptr;
  one_sided_call call;
  rank with{};
  bool taken = false;
  one_sided_work* next_free = nullptr;

  [[noreturn]] void raise() const override;
  void release() noexcept override;
};

class one_sided_works {
 public:
  one_sided_work& take(communicator_state& on);
  void release(one_sided_work& work) noexcept;
  bool any_of(const communicator_state& on) const noexcept;

 private:
  std::deque<one_sided_work> all_;
  one_sided_work* free_ = nullptr;
  std::size_t taken_ = 0;
};

}  // namespace verbena::runtime
