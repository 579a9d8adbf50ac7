// Loopback for the contract suite: one endpoint, which is its own peer.
#pragma once

#include "fabric_set.hpp"
#include "transport/self/self_fabric.hpp"

namespace verbena::contract {

class self_set {
 public:
  using fabric_type = transport::self::self_fabric;
  static constexpr const char* name = "self";
  static constexpr std::uint32_t most = 1;
  static constexpr int quiet_rounds = 2;
  static constexpr bool can_kill = false;

  explicit self_set(std::uint32_t) {}
  fabric_type& fabric(std::uint32_t) { return fabric_; }
  void kill(std::uint32_t) {}
  bool pass_time() { return false; }
  base::nanoseconds now() { return 0; }

 private:
  fabric_type fabric_{transport::peer{0}};
};
static_assert(fabric_set<self_set>);

}  // namespace verbena::contract
