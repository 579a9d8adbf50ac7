// The ranks of this host: their shared segment, the keeper that is their parent, the PMIx server they join through, and the
// cores they are bound to. Used by rdmarun itself for a job of one host, and by the agent of each host of a larger one.
//
// The order matters, and is that of the declarations: the keeper is forked before any thread exists, libpmix's server starts on a
// thread of its own, and while it does the job is described and the machine looked at.
#pragma once

#include "base/fd.hpp"
#include "launcher/binder.hpp"
#include "launcher/core_locks.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/keeper_link.hpp"
#include "launcher/node.hpp"
#include "launcher/pmix_server.hpp"
#include "launcher/segment_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace verbena::launcher {

class local_node final : public node {
 public:
  local_node() = default;
  /// If the job has not been run, the keeper ends.
  ~local_node() override;
  local_node(const local_node&) = delete;
  local_node& operator=(const local_node&) = delete;

  /// Blocks all signals, becomes a subreaper and forks the keeper, which owns the standard input from here on and closes
  /// `parents_fd`. False: no process can be made.
  bool fork_keeper(int parents_fd = -1);
  void prepare_server();
  /// `ranks`: job ranks of this host, ascending, which share `cores`. The plan is completed with what belongs to this node. Throws
  /// verbena::error if the kernel refuses the segment. Empty, or a sentence.
  std::string describe(std::uint32_t job_size, std::vector<std::uint32_t> ranks, unsigned cores, rank_plan plan);
  /// Finds the processors of each rank. `mask`: what may be used; `usable`: how many of them after the quota.
  const bound_job& bind(binding policy, mapping map, const std::vector<unsigned>& mask, unsigned usable);
  /// Registers the job, completed with the places of the ranks. Empty, or a sentence.
  std::string start_server(pmix_job job);

  /// Where the ranks' outputs go; see keeper_link.
  struct outputs {
    std::function<void(std::uint32_t rank, base::unique_fd output, base::unique_fd errors)> on_pipes;
    std::function<std::array<base::unique_fd, 2>(std::uint32_t rank)>
        open_files;  ///< if set, instead of pipes
  };
  void attach(event_loop& loop, outputs where, node_events tell);

  void start() override;
  void signal(int number, bool from_terminal) override { keeper_->signal(number, from_terminal); }
  void resume() override { keeper_->resume(); }
  void kill_all() override { keeper_->kill_all(); }
  void end() override;
  void close_output(unsigned) override {}  // the channels have closed the pipes
  void announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome, failure why) override {
    segment_->announce(rank, state, outcome);
    if (why != failure::none) pmix_.tell_failure(rank, why, static_cast<int>(outcome));
  }
  void announce_ending() override { segment_->announce_ending(); }

  pmix_server& server() { return pmix_; }

 private:
  void tell_pmix_events();
  void on_report(const keeper_report& report);
  void on_keeper_gone();

  std::vector<std::uint32_t> ranks_;
  std::unique_ptr<segment_server> segment_;
  base::unique_fd segment_place_;  // its number, before it is there
  core_locks locks_;  // the keeper has a part in them: cores are held until the last rank is gone
  std::string directory_;
  base::unique_fd keeper_socket_;
  pid_t keeper_pid_ = -1;
  std::vector<pid_t> strangers_;  // children that whoever became rdmarun had
  pmix_server pmix_;
  bound_job bound_;
  node_events tell_;
  std::unique_ptr<keeper_link> keeper_;
  bool end_ordered_ = false;
};

}  // namespace verbena::launcher
