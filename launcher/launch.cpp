#include "launcher/launch.hpp"

#include "launcher/core_file.hpp"
#include "launcher/descent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace verbena::launcher {
namespace {

constexpr std::initializer_list<int> ending_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
constexpr std::initializer_list<int> passed_signals = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

bool ends_job(int signal) {
  for (const int each : ending_signals)
    if (each == signal) return true;
  return false;
}

/// The signals to watch: a signal that whoever started us chose to ignore (nohup) stays ignored.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const auto& list : {ending_signals, passed_signals})
    for (const int signal : list) {
      struct sigaction now {};
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, signal);
    }
  return set;
}

bool same_file(int a, int b) {
  struct stat first {
  }, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

base::nanoseconds seconds(double s) {
  return static_cast<base::nanoseconds>(s * 1e9);
}

}  // namespace

launch::launch(const options& how, std::vector<std::uint32_t> programs, std::vector<std::vector<unsigned>> cpus,
               std::string host, int errors_fd, segment_server& segment)
    : how_(how),
      programs_(std::move(programs)),
      cpus_(std::move(cpus)),
      host_(std::move(host)),
      errors_fd_(errors_fd),
      segment_(segment),
      job_(static_cast<std::uint32_t>(programs_.size()), host_, base::steady_now()),
      begin_(base::steady_now()) {
  output_ = std::make_unique<channel>(loop_, 1);
  errors_ = output_.get();
  if (!same_file(1, errors_fd_)) {
    errors_own_ = std::make_unique<channel>(loop_, errors_fd_);
    errors_own_->on_broken([this](int error) { on_output_broken(error, "error"); });
    errors_ = errors_own_.get();
  }
  output_->on_broken([this](int error) { on_output_broken(error, "output"); });
}

int launch::run(base::unique_fd keeper, pmix_server& pmix) {
  pmix_ = &pmix;
  const sigset_t watched = watched_signals();
  signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signals(); });
  loop_.watch(pmix.event_fd(), EPOLLIN, [this](std::uint32_t) { take_pmix_events(); });
  segment_.serve(loop_);
  keeper_link::callbacks call;
  call.on_pipes = [this](std::uint32_t rank, base::unique_fd output, base::unique_fd errors) {
    on_pipes(rank, std::move(output), std::move(errors));
  };
  call.on_report = [this](const keeper_report& report) { on_report(report); };
  if (!how_.output_directory.empty())
    call.open_files = [this](std::uint32_t rank) {
      std::array<base::unique_fd, 2> files;
      for (const std::size_t i : {0U, 1U}) {
        const std::string path =
            fmt::format("{}/rank.{}.{}", how_.output_directory, rank, i == 0 ? "out" : "err");
        files[i].reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      }
      return files;
    };
  call.on_gone = [this] { on_keeper_gone(); };
  call.on_no_output = [this](int error) {
    if (killed_) return;  // one rank's was enough
    std::string what = fmt::format("rdmarun: cannot open the ranks' outputs{}{}: {}",
                                   how_.output_directory.empty() ? "" : " in ", how_.output_directory,
                                   std::strerror(error));
    if (error == EMFILE || error == ENFILE) {
      rlimit limit{};
      ::getrlimit(RLIMIT_NOFILE, &limit);
      what += fmt::format(" ({} ranks, limit of {} open files)", job_.size(), limit.rlim_cur);
    }
    job_.launcher_failed(what);
    say(job_.line());
    kill_all();
  };
  keeper_ = std::make_unique<keeper_link>(loop_, std::move(keeper), std::move(call));
  keeper_->send_environment(pmix.environment());
  for (std::uint32_t rank = 0; rank < job_.size(); ++rank)
    keeper_->start(rank, rank < cpus_.size() ? cpus_[rank] : std::vector<unsigned>{});
  if (how_.timeout_s) loop_.after(seconds(*how_.timeout_s), [this] { on_timeout(); });
  loop_.before_sleep([this] {
    output_->pump();
    if (errors_own_) errors_own_->pump();
  });
  loop_.run();
  return finish();
}

void launch::on_pipes(std::uint32_t rank, base::unique_fd output, base::unique_fd errors) {
  const std::string prefix = how_.tag ? fmt::format("[{}] ", rank) : "";
  output_->add(std::move(output), prefix);
  errors_->add(std::move(errors), prefix);
}

void launch::on_report(const keeper_report& report) {
  // Joining and leaving happened before the exit that is reported here; so do they on the table.
  take_pmix_events();
  switch (report.what) {
    case keeper_report::kind::started:
      job_.started(report.rank, report.pid);
      // What nobody asked for by name may be refused in silence: some containers forbid it.
      if (report.value != 0 && (how_.bind != binding::automatic || how_.verbose))
        say(fmt::format("rdmarun: rank {} on {}: cannot be bound to its processors: {}", report.rank, host_,
                        std::strerror(report.value)));
      return;
    case keeper_report::kind::start_failed: {
      const std::string& program = how_.programs[programs_[report.rank]].arguments[0];
      const std::string& subject = report.step == start_step::enter_directory ? how_.directory : program;
      after_event(report.rank, job_.start_failed(report.rank, report.step, report.value, subject));
      return;
    }
    case keeper_report::kind::exited: {
      const std::string core = WCOREDUMP(report.value) ? describe_core(report.pid, how_.directory) : "";
      const bool failed = job_.exited(report.rank, report.value, base::steady_now(), core);
      if (!failed)
        segment_.announce(report.rank, base::rank_state::left, static_cast<std::uint32_t>(report.value));
      after_event(report.rank, failed);
    }
  }
}

void launch::take_pmix_events() {
  for (const pmix_event& event : pmix_->take_events()) {
    if (event.rank >= job_.size()) continue;
    switch (event.what) {
      case pmix_event::kind::joined:
        segment_.announce(event.rank, base::rank_state::joined, 0);
        if (job_.joined(event.rank, base::steady_now())) begin_ending(SIGTERM, how_.abort_grace_s);
        break;
      case pmix_event::kind::left:
        job_.left(event.rank);
        segment_.announce(event.rank, base::rank_state::left, 0);
        break;
      case pmix_event::kind::aborted:
        after_event(event.rank, job_.aborted(event.rank, event.code, event.text, base::steady_now()));
        break;
    }
  }
}

void launch::after_event(std::uint32_t rank, bool failed) {
  if (failed) {
    segment_.announce(rank, base::rank_state::failed, static_cast<std::uint32_t>(job_[rank].wait_status));
    begin_ending(SIGTERM, how_.abort_grace_s);
  }
  end_when_done();
}

void launch::begin_ending(int signal, double grace_s) {
  if (ending_) return;
  ending_ = true;
  const bool broken_pipe = job_.status() == status_signal + SIGPIPE && output_closed_;
  if (!job_.line().empty() && !broken_pipe) say(job_.line());
  if (job_.all_ended()) return;
  segment_.announce_ending();
  keeper_->signal(signal, false);
  keeper_->resume();  // a stopped rank shall see it as well
  loop_.after(seconds(grace_s), [this] { kill_all(); });
}

void launch::kill_all() {
  if (killed_) return;
  ending_ = killed_ = true;
  segment_.announce_ending();
  keeper_->kill_all();
  loop_.after(3 * base::second, [this] {
    for (std::uint32_t rank = 0; rank < job_.size(); ++rank)
      if (job_[rank].phase == rank_phase::running)
        say(
            fmt::format("rdmarun: rank {} on {}: process {} does not end although it is killed: rdmarun's "
                        "keeper is stopped, or the "
                        "kernel holds it, as it does when a file system or device does not answer",
                        rank, host_, job_[rank].pid));
  });
  // Ranks whose start was dropped will never report; the end of the keeper settles them.
  for (std::uint32_t rank = 0; rank < job_.size(); ++rank)
    if (job_[rank].phase == rank_phase::waiting) {
      keeper_->end();
      end_ordered_ = true;
      break;
    }
}

void launch::end_when_done() {
  if (!job_.all_ended() || end_ordered_) return;
  end_ordered_ = true;
  keeper_->end();
}

void launch::on_keeper_gone() {
  if (!end_ordered_) {
    job_.launcher_failed("rdmarun: the process that watches over the ranks was killed; the job is ended");
    if (!ending_) say(job_.line());
    segment_.announce_ending();
  }
  // Orphans come to us, since we are a subreaper too (the ranks die by their parent-death signal). After an
  // orderly end there is only the keeper itself to wait for.
  // Children that a shell had before it became rdmarun are not ours: they are neither waited for nor killed.
  if (end_ordered_) {
    while (::waitpid(keeper_pid_, nullptr, 0) < 0 && errno == EINTR) {  // it is leaving: nothing to sleep for
    }
    loop_.stop();
    return;
  }
  const base::nanoseconds end = base::steady_now() + 2 * base::second;
  for (pid_t pid;
       ((pid = ::waitpid(-1, nullptr, WNOHANG)) >= 0 || errno != ECHILD) && base::steady_now() < end;) {
    if (pid > 0) continue;
    if (!kill_descent(strangers_) && !strangers_.empty()) break;  // those that are left are not ours
    ::usleep(200);
  }
  loop_.stop();
}

void launch::on_output_broken(int error, const char* which) {
  output_closed_ = true;
  if (error == EPIPE) return;  // the ranks notice, as in any pipeline
  const std::string line =
      fmt::format("rdmarun: cannot write to standard {}: {}", which, std::strerror(error));
  job_.launcher_failed(line);
  begin_ending(SIGTERM, how_.abort_grace_s);
}

void launch::on_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<long>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;  // the keeper's end is seen on its socket
    on_signal(signal, info.ssi_code == SI_KERNEL);
  }
}

void launch::on_signal(int signal, bool from_terminal) {
  if (!ends_job(signal)) {
    keeper_->signal(signal, from_terminal);
    if (signal == SIGTSTP) ::raise(SIGSTOP);
    return;
  }
  if (ending_ && signal == SIGINT) return kill_all();  // pressed again
  const bool first = !job_.decided();
  job_.signalled(signal);
  keeper_->signal(signal, from_terminal);
  if (!first || ending_) return;
  ending_ = true;
  // No announcement yet: ranks that catch the signal may talk to each other while they save their work.
  keeper_->resume();
  loop_.after(seconds(how_.grace_s), [this] { kill_all(); });
}

void launch::on_timeout() {
  if (job_.decided()) return;
  job_.timed_out();
  constexpr std::uint32_t most = 16;
  std::uint32_t alive = 0;
  for (std::uint32_t rank = 0; rank < job_.size(); ++rank) {
    if (job_[rank].phase == rank_phase::ended) continue;
    if (++alive <= most)
      say(fmt::format("rdmarun: rank {} on {}: still running at the time limit of {} s (pid {})", rank, host_,
                      *how_.timeout_s, job_[rank].pid));
  }
  if (alive > most) say(fmt::format("rdmarun: and {} more ranks", alive - most));
  begin_ending(SIGTERM, how_.grace_s);
}

void launch::say(const std::string& line) {
  if (!how_.quiet) errors_->say(line);
}

int launch::finish() {
  // No rank is left: from here on a signal may end us while a slow reader takes the rest.
  sigset_t none;
  sigemptyset(&none);
  signals_.reset();
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
  loop_.before_sleep({});
  output_->finish(base::never);
  if (errors_own_) errors_own_->finish(base::never);
  if (how_.verbose)
    say(fmt::format("rdmarun: {} ranks ended with status {} after {:.2f} s", job_.size(), job_.status(),
                    static_cast<double>(base::steady_now() - begin_) / 1e9));
  errors_->finish(base::never);
  return job_.status();
}

}  // namespace verbena::launcher
