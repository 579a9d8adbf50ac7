// One host's part of a job, as the head of the job sees it: whom it tells to start, signal and end the ranks there, and who
// tells it what became of them. Two forms: local_node, whose ranks are on this host, and remote_node, whose ranks an agent
// on another host looks after. It must not know verdicts: those are the head's (launch.hpp).
#pragma once

#include "base/job_page.hpp"
#include "launcher/job.hpp"
#include "launcher/keeper.hpp"
#include "launcher/pmix_server.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace verbena::launcher {

/// What a node tells the head, on the head's event loop. Of one rank everything comes in the order it happened: it has
/// joined, left or aborted before it has ended.
struct node_events {
  /// `core`: what to say of a core file if the rank left one.
  std::function<void(const keeper_report& what, const std::string& core)> on_report;
  std::function<void(const pmix_event&)> on_pmix;
  /// The ranks' outputs could not be opened; none of those that have not been started is.
  std::function<void(int error)> on_no_output;
  /// Nothing of the job is left there, and nothing more will be told. `why`: a sentence if it came without an order to end.
  std::function<void(const std::string& why)> on_gone;
};

class node {
 public:
  virtual ~node() = default;

  /// Starts all its ranks.
  virtual void start() = 0;
  /// To each rank's process group; `from_terminal`: whoever shares our terminal has it already.
  virtual void signal(int number, bool from_terminal) = 0;
  /// Lets those go on that are stopped.
  virtual void resume() = 0;
  /// Kills every process of the job there, and drops what has not been started.
  virtual void kill_all() = 0;
  /// How long nothing has been heard from there, not even from the host's kernel.
  virtual base::nanoseconds unheard() const { return 0; }
  /// A host that is there is not silent for longer.
  virtual base::nanoseconds usual_silence() const { return 0; }
  /// All ranks there have ended: clean up; `on_gone` follows.
  virtual void end() = 0;

  /// Nobody reads the ranks' standard output (0) or error (1) any more: let them notice, as in any pipeline.
  virtual void close_output(unsigned which) = 0;

  // News of any rank of the job, for the ranks there: on the job page (base/job_page.hpp), and, of one whose failure
  // ends the job, as a PMIx event. `why`: in which way it has failed, if it is that one.
  virtual void announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome, failure why) = 0;
  virtual void announce_ending() = 0;
};

}  // namespace verbena::launcher
