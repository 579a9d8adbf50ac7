// The job as a table of states, and the one decision that matters to scripts: with which status does it end,
// and why. Pure: events and times come in, nothing is sent or killed here. The first rank to fail, in time,
// decides; a signal to the launcher or the time limit decides if it comes before any failure.
#pragma once

#include "base/clock.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

/// Exit statuses of rdmarun itself; a rank's own status passes through. The table of docs/rdmarun.md and
/// `--help status`.
enum exit_status : int {
  status_usage = 2,           ///< the command line or a setting is wrong; nothing was started
  status_timeout = 124,       ///< --timeout passed
  status_launcher = 125,      ///< rdmarun itself failed
  status_not_runnable = 126,  ///< the program was found but cannot be run, or the directory not entered
  status_not_found = 127,     ///< no such program
  status_signal = 128,        ///< plus the number of the signal that ended a rank, or rdmarun
};

enum class rank_phase : std::uint8_t { waiting, running, ended };

/// In which way a rank failed first.
enum class failure : std::uint8_t {
  none,
  to_start,
  by_abort,  ///< PMIx_Abort
  by_signal,
  by_status,        ///< exited with another status than 0
  without_leaving,  ///< exited with 0 inside the job, or without having joined it while others had
  with_its_host,    ///< which is lost
};

struct rank_entry {
  pid_t pid = 0;
  rank_phase phase = rank_phase::waiting;
  bool joined = false;  ///< is between PMIx_Init and PMIx_Finalize
  bool left = false;    ///< has been through PMIx_Finalize
  int wait_status = 0;  ///< valid when ended
  failure why = failure::none;
};

/// At which step a start failed.
enum class start_step : std::uint8_t { execute, enter_directory, make_process };

class job {
 public:
  /// All ranks on one host.
  job(std::uint32_t size, std::string host, base::nanoseconds now);
  /// `host_of`: of each rank, its place in `hosts`.
  job(std::vector<std::uint32_t> host_of, std::vector<std::string> hosts, base::nanoseconds now);

  // Events, in the order they happened. Those that return bool say whether the rank failed by it.
  void started(std::uint32_t rank, pid_t pid);
  /// `subject`: the program that could not be run, or the directory that could not be entered.
  bool start_failed(std::uint32_t rank, start_step step, int error, std::string_view subject);
  /// The rank that failed by it, if one did: one that had ended outside of the job.
  std::optional<std::uint32_t> joined(std::uint32_t rank, base::nanoseconds now);
  void left(std::uint32_t rank);
  bool aborted(std::uint32_t rank, int code, std::string_view why, base::nanoseconds now);
  /// `core`: what to say of a core file, if the status tells of one.
  bool exited(std::uint32_t rank, int wait_status, base::nanoseconds now,
              std::string_view core = "core dumped");
  /// Its host is lost: nothing more will be heard of it. False: it had ended.
  bool lost(std::uint32_t rank);
  void signalled(int signal);
  void timed_out();
  void launcher_failed(std::string line);

  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  const rank_entry& operator[](std::uint32_t rank) const { return ranks_[rank]; }
  bool all_ended() const { return ended_ == ranks_.size(); }
  bool decided() const { return status_.has_value(); }
  int status() const { return status_.value_or(0); }
  /// The one line that says what happened; empty if there is nothing to say.
  const std::string& line() const { return line_; }

 private:
  bool fail(std::uint32_t rank, failure why, int status, std::string line);
  void decide(int status, std::string line);
  std::string who(std::uint32_t rank) const;
  std::string age(base::nanoseconds now) const;

  std::vector<rank_entry> ranks_;
  std::vector<std::uint32_t> host_of_;
  std::vector<std::string> hosts_;
  base::nanoseconds begin_;
  std::uint32_t ended_ = 0;
  std::uint32_t joined_now_ = 0;
  std::optional<std::uint32_t> ended_outside_;  ///< a rank that ended with 0 and never joined
  std::optional<int> status_;
  std::string line_;
};

}  // namespace verbena::launcher
