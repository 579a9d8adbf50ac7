// One job from start to end: ties the state table to the nodes that run its ranks, the outputs and the signals, on one event
// loop. The decisions are in job.hpp; here is only who is told what, and in which order.
#pragma once

#include "base/fd.hpp"
#include "launcher/channel.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/job.hpp"
#include "launcher/node.hpp"
#include "launcher/options.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace verbena::launcher {

class launch {
 public:
  /// `programs`, `node_of`: of each rank, its program and the node it is on. `errors_fd` is the user's standard error;
  /// descriptor 2 may be something else by now.
  launch(event_loop& loop, const options& how, std::vector<std::uint32_t> programs,
         std::vector<std::uint32_t> node_of, std::vector<std::string> hosts, int errors_fd);

  channel& output() { return *output_; }
  channel& errors() { return *errors_; }
  /// What node `index` reports comes here.
  node_events events_of(std::uint32_t index);
  /// What stands before each line of a rank's output.
  std::string prefix_of(std::uint32_t rank) const;
  /// The files of --output for one rank; an empty one with errno if it cannot be opened.
  std::array<base::unique_fd, 2> open_files(std::uint32_t rank) const;

  /// A file of --output cannot be written: the job is ended.
  void fail_output(int error);

  /// Runs the job on the nodes, which outlive this; returns the exit status.
  int run(std::vector<node*> nodes);

 private:
  void on_report(const keeper_report& report, const std::string& core);
  void on_pmix(const pmix_event& event);
  void on_no_output(int error);
  void on_node_gone(std::uint32_t index, const std::string& why);
  void on_output_broken(int error, unsigned which);
  void on_signals();
  void on_signal(int signal, bool from_terminal);
  void on_timeout();
  void after_event(std::uint32_t rank, bool failed);

  void begin_ending(int signal, double grace_s);
  void kill_all();
  std::string why_it_stays(std::uint32_t rank) const;  ///< although everything was killed
  void signal_all(int signal, bool from_terminal);
  void resume_all();
  void announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome);
  void announce_ending();
  void end_when_done();
  void end_nodes();
  const std::string& host_of(std::uint32_t rank) const { return hosts_[node_of_[rank]]; }
  void say(const std::string& line);
  int finish();

  event_loop& loop_;
  const options& how_;
  std::vector<std::uint32_t> programs_;  // of each rank
  std::vector<std::uint32_t> node_of_;   // the same
  std::vector<std::string> hosts_;       // of each node
  int errors_fd_;
  job job_;
  std::unique_ptr<channel> output_;
  std::unique_ptr<channel> errors_own_;  // where the two outputs are one file, there is one channel
  channel* errors_ = nullptr;
  std::vector<node*> nodes_;
  std::uint32_t nodes_gone_ = 0;
  base::unique_fd signals_;
  base::nanoseconds begin_ = 0;
  bool ending_ = false;       // the ranks have been told to end
  bool killed_ = false;       // and then killed
  bool end_ordered_ = false;  // all ranks have ended, the nodes clean up
  bool output_closed_ = false;
  bool impatient_ = false;  // a signal came when only output was left
};

}  // namespace verbena::launcher
