// One job from start to end: ties the state table to the keeper, the PMIx server, the segment, the outputs
// and the signals, on one event loop. The decisions are in job.hpp; here is only who is told what, and in
// which order.
#pragma once

#include "base/fd.hpp"
#include "launcher/channel.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/job.hpp"
#include "launcher/keeper_link.hpp"
#include "launcher/options.hpp"
#include "launcher/pmix_server.hpp"
#include "launcher/segment_server.hpp"

#include <memory>
#include <string>

namespace verbena::launcher {

class launch {
 public:
  /// `errors_fd` is the user's standard error; descriptor 2 may be something else by now. `cpus`: that each rank is
  /// bound to; empty: none is.
  launch(const options& how, std::vector<std::uint32_t> programs, std::vector<std::vector<unsigned>> cpus,
         std::string host, int errors_fd, segment_server& segment);

  /// Children that were there before the keeper `pid`: whoever became rdmarun had them.
  void know_keeper(pid_t pid, std::vector<pid_t> strangers) {
    keeper_pid_ = pid;
    strangers_ = std::move(strangers);
  }

  /// Takes the keeper's socket and the started server; returns the exit status.
  int run(base::unique_fd keeper, pmix_server& pmix);

 private:
  void on_pipes(std::uint32_t rank, base::unique_fd output, base::unique_fd errors);
  void on_report(const keeper_report& report);
  void on_keeper_gone();
  void on_output_broken(int error, const char* which);
  void on_signals();
  void on_signal(int signal, bool from_terminal);
  void on_timeout();
  void take_pmix_events();
  void after_event(std::uint32_t rank, bool failed);

  void begin_ending(int signal, double grace_s);
  void kill_all();
  void end_when_done();
  void say(const std::string& line);
  int finish();

  const options& how_;
  std::vector<std::uint32_t> programs_;  // of each rank
  std::vector<std::vector<unsigned>> cpus_;
  std::string host_;
  int errors_fd_;
  segment_server& segment_;
  pid_t keeper_pid_ = -1;
  std::vector<pid_t> strangers_;
  event_loop loop_;
  job job_;
  std::unique_ptr<channel> output_;
  std::unique_ptr<channel> errors_own_;  // where the two outputs are one file, there is one channel
  channel* errors_ = nullptr;
  std::unique_ptr<keeper_link> keeper_;
  pmix_server* pmix_ = nullptr;
  base::unique_fd signals_;
  base::nanoseconds begin_ = 0;
  bool ending_ = false;       // the ranks have been told to end
  bool killed_ = false;       // and then killed
  bool end_ordered_ = false;  // all ranks have ended, the keeper cleans up
  bool output_closed_ = false;
};

}  // namespace verbena::launcher
