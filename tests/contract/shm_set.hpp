// Shared memory for the contract suite: one segment, one fabric per local rank over one mapping, polled in
// turn by one thread. A death is announced in the job page, as a launcher does it.
#pragma once

#include "fabric_set.hpp"
#include "tests/unit/shm_node.hpp"
#include "transport/shm/shm_fabric.hpp"

#include <memory>
#include <vector>

namespace verbena::contract {

template <bool SingleCopy>
class shm_set {
 public:
  using fabric_type = transport::shm::shm_fabric;
  static constexpr const char* name = SingleCopy ? "shm" : "shm, no single copy";
  static constexpr std::uint32_t most = 64;
  static constexpr int quiet_rounds = 300;  // deaths and cold rings are looked at every 64th poll
  static constexpr bool can_kill = true;

  explicit shm_set(std::uint32_t size) : node_(size) {
    for (std::uint32_t i = 0; i < size; ++i)
      fabrics_.push_back(node_.fabric(i, transport::shm::options{.single_copy = SingleCopy}));
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j)
        if (i != j) fabrics_[i]->attach(transport::peer{j}, fabrics_[j]->address());
  }
  fabric_type& fabric(std::uint32_t i) { return *fabrics_[i]; }
  void kill(std::uint32_t i) { node_.page.announce(i, base::rank_state::failed, 9); }
  bool pass_time() { return false; }
  base::nanoseconds now() { return base::steady_now(); }

 private:
  testing::shm_node node_;
  std::vector<std::unique_ptr<fabric_type>> fabrics_;
};
static_assert(fabric_set<shm_set<true>>);

}  // namespace verbena::contract
