// A real RDMA device for the contract suite: several endpoints in one process, each with queue pairs of its own on it,
// polled in turn by one thread. A death: the endpoint's queue pairs go, as those of a process that ended, and then it is
// announced in the job page, as a launcher does it.
#pragma once

#include "fabric_set.hpp"
#include "tests/unit/shm_node.hpp"
#include "transport/verbs/verbs_fabric.hpp"

#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace verbena::contract {

class verbs_set {
 public:
  using fabric_type = transport::verbs::verbs_fabric;
  static constexpr const char* name = "verbs";
  static constexpr std::uint32_t most = 16;
  static constexpr int quiet_rounds = 80;  // deaths are looked for every 64th poll
  static constexpr bool can_kill = true;

  explicit verbs_set(std::uint32_t size) : node_(size) {
    for (std::uint32_t i = 0; i < size; ++i)
      fabrics_.push_back(std::make_unique<fabric_type>(
          transport::peer{i}, size, &node_.page,
          transport::verbs::options{.device = {}, .any_atomics = true, .wake = {}}));
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j)
        if (i != j && !fabrics_[i]->attach(transport::peer{j}, fabrics_[j]->address()))
          throw std::runtime_error(fabrics_[i]->explain(transport::peer{j}));
  }
  fabric_type& fabric(std::uint32_t i) { return *fabrics_[i]; }
  void kill(std::uint32_t i) {
    fabrics_[i]->die();
    node_.page.announce(i, base::rank_state::failed, 9);
  }
  /// Packets take a while in the kernel; nobody says when they are through.
  bool pass_time() {
    ::usleep(100);
    return false;
  }
  base::nanoseconds now() { return base::steady_now(); }

 private:
  testing::shm_node node_;
  std::vector<std::unique_ptr<fabric_type>> fabrics_;
};
static_assert(fabric_set<verbs_set>);

}  // namespace verbena::contract
