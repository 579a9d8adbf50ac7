#include "launcher/launch.hpp"

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

launch::launch(event_loop& loop, const options& how, std::vector<std::uint32_t> programs,
               std::vector<std::uint32_t> node_of, std::vector<std::string> hosts, int errors_fd)
    : loop_(loop),
      how_(how),
      programs_(std::move(programs)),
      node_of_(std::move(node_of)),
      hosts_(std::move(hosts)),
      errors_fd_(errors_fd),
      job_(node_of_, hosts_, base::steady_now()),
      begin_(base::steady_now()) {
  output_ = std::make_unique<channel>(loop_, 1);
  errors_ = output_.get();
  if (!same_file(1, errors_fd_)) {
    errors_own_ = std::make_unique<channel>(loop_, errors_fd_);
    errors_own_->on_broken([this](int error) { on_output_broken(error, 1); });
    errors_ = errors_own_.get();
  }
  output_->on_broken([this](int error) { on_output_broken(error, 0); });
}

node_events launch::events_of(std::uint32_t index) {
  node_events tell;
  tell.on_report = [this](const keeper_report& what, const std::string& core) { on_report(what, core); };
  tell.on_pmix = [this](const pmix_event& event) { on_pmix(event); };
  tell.on_no_output = [this](int error) { on_no_output(error); };
  tell.on_gone = [this, index](const std::string& why) { on_node_gone(index, why); };
  return tell;
}

std::string launch::prefix_of(std::uint32_t rank) const {
  return how_.tag ? fmt::format("[{}] ", rank) : std::string{};
}

std::array<base::unique_fd, 2> launch::open_files(std::uint32_t rank) const {
  std::array<base::unique_fd, 2> files;
  for (const std::size_t i : {0U, 1U}) {
    const std::string path =
        fmt::format("{}/rank.{}.{}", how_.output_directory, rank, i == 0 ? "out" : "err");
    files[i].reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  }
  return files;
}

int launch::run(std::vector<node*> nodes) {
  nodes_ = std::move(nodes);
  const sigset_t watched = watched_signals();
  signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signals(); });
  for (node* each : nodes_) each->start();
  if (how_.timeout_s) loop_.after(seconds(*how_.timeout_s), [this] { on_timeout(); });
  loop_.before_sleep([this] {
    output_->pump();
    if (errors_own_) errors_own_->pump();
  });
  loop_.run();
  return finish();
}

void launch::on_no_output(int error) {
  if (killed_) return;  // one rank's was enough
  std::string what =
      fmt::format("rdmarun: cannot open the ranks' outputs{}{}: {}",
                  how_.output_directory.empty() ? "" : " in ", how_.output_directory, std::strerror(error));
  if (error == EMFILE || error == ENFILE) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    what += fmt::format(" ({} ranks, limit of {} open files)", job_.size(), limit.rlim_cur);
  }
  job_.launcher_failed(what);
  say(job_.line());
  kill_all();
}

void launch::on_report(const keeper_report& report, const std::string& core) {
  if (job_[report.rank].phase == rank_phase::ended) return;  // it was lost, or its node is not to be trusted
  switch (report.what) {
    case keeper_report::kind::started:
      job_.started(report.rank, report.pid);
      // What nobody asked for by name may be refused in silence: some containers forbid it.
      if (report.value != 0 && (how_.bind != binding::automatic || how_.verbose))
        say(fmt::format("rdmarun: rank {} on {}: cannot be bound to its processors: {}", report.rank,
                        host_of(report.rank), std::strerror(report.value)));
      return;
    case keeper_report::kind::start_failed: {
      const std::string& program = how_.programs[programs_[report.rank]].arguments[0];
      const std::string& subject = report.step == start_step::enter_directory ? how_.directory : program;
      after_event(report.rank, job_.start_failed(report.rank, report.step, report.value, subject));
      return;
    }
    case keeper_report::kind::exited: {
      const bool failed = job_.exited(report.rank, report.value, base::steady_now(), core);
      if (!failed) announce(report.rank, base::rank_state::left, static_cast<std::uint32_t>(report.value));
      after_event(report.rank, failed);
    }
  }
}

void launch::on_pmix(const pmix_event& event) {
  if (event.rank >= job_.size()) return;
  switch (event.what) {
    case pmix_event::kind::joined:
      announce(event.rank, base::rank_state::joined, 0);
      if (const auto failed = job_.joined(event.rank, base::steady_now())) after_event(*failed, true);
      break;
    case pmix_event::kind::left:
      job_.left(event.rank);
      announce(event.rank, base::rank_state::left, 0);
      break;
    case pmix_event::kind::aborted:
      after_event(event.rank, job_.aborted(event.rank, event.code, event.text, base::steady_now()));
      break;
    default:
      break;  // between hosts (hosts/meetings.hpp)
  }
}

void launch::after_event(std::uint32_t rank, bool failed) {
  if (failed) {
    announce(rank, base::rank_state::failed, static_cast<std::uint32_t>(job_[rank].wait_status));
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
  announce_ending();
  signal_all(signal, false);
  resume_all();  // a stopped rank shall see it as well
  loop_.after(seconds(grace_s), [this] { kill_all(); });
}

void launch::kill_all() {
  if (killed_) return;
  ending_ = killed_ = true;
  announce_ending();
  for (node* each : nodes_) each->kill_all();
  loop_.after(3 * base::second, [this] {
    for (std::uint32_t rank = 0; rank < job_.size(); ++rank)
      if (job_[rank].phase == rank_phase::running) say(why_it_stays(rank));
  });
  // Ranks whose start was dropped will never report; the end of the nodes settles them.
  for (std::uint32_t rank = 0; rank < job_.size(); ++rank)
    if (job_[rank].phase == rank_phase::waiting) return end_nodes();
}

std::string launch::why_it_stays(std::uint32_t rank) const {
  const base::nanoseconds silent = nodes_[node_of_[rank]]->unheard();
  if (silent > nodes_[node_of_[rank]]->usual_silence())
    return fmt::format("rdmarun: rank {} on {}: cannot be told to end: nothing has been heard of that host for {} s", rank,
                       host_of(rank), silent / base::second);
  return fmt::format("rdmarun: rank {} on {}: process {} does not end although it is killed: rdmarun's keeper is stopped, or the "
                     "kernel holds it, as it does when a file system or device does not answer",
                     rank, host_of(rank), job_[rank].pid);
}

void launch::signal_all(int signal, bool from_terminal) {
  for (node* each : nodes_) each->signal(signal, from_terminal);
}

void launch::resume_all() {
  for (node* each : nodes_) each->resume();
}

/// That a rank has joined concerns nobody on other nodes; its end does.
void launch::announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome) {
  // Those that end because rdmarun ends them are no news.
  const failure why = ending_ ? failure::none : job_[rank].why;
  if (state == base::rank_state::joined) return nodes_[node_of_[rank]]->announce(rank, state, outcome, why);
  for (node* each : nodes_) each->announce(rank, state, outcome, why);
}

void launch::announce_ending() {
  for (node* each : nodes_) each->announce_ending();
}

void launch::end_when_done() {
  if (job_.all_ended()) end_nodes();
}

void launch::end_nodes() {
  if (end_ordered_) return;
  end_ordered_ = true;
  for (node* each : nodes_) each->end();
}

void launch::on_node_gone(std::uint32_t index, const std::string& why) {
  if (++nodes_gone_ == nodes_.size()) loop_.stop();
  if (why.empty()) return;
  job_.launcher_failed("rdmarun: " + why);
  bool lost = false;
  for (std::uint32_t rank = 0; rank < job_.size(); ++rank)
    if (node_of_[rank] == index && job_.lost(rank)) {
      lost = true;
      announce(rank, base::rank_state::failed, SIGKILL);
    }
  // A rank elsewhere may have noticed first, and failed: that began the end, and this is the cause.
  if (lost && ending_) say("rdmarun: " + why);
  begin_ending(SIGTERM, how_.abort_grace_s);
  end_when_done();
}

void launch::on_output_broken(int error, unsigned which) {
  output_closed_ = true;
  for (node* each : nodes_) {
    each->close_output(which);
    if (!errors_own_) each->close_output(1);  // one file
  }
  if (error == EPIPE) return;  // the ranks notice, as in any pipeline
  const std::string line = fmt::format("rdmarun: cannot write to standard {}: {}",
                                       which == 0 ? "output" : "error", std::strerror(error));
  job_.launcher_failed(line);
  begin_ending(SIGTERM, how_.abort_grace_s);
}

void launch::fail_output(int error) {
  job_.launcher_failed(
      fmt::format("rdmarun: cannot write into '{}': {}", how_.output_directory, std::strerror(error)));
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
    signal_all(signal, from_terminal);
    if (signal == SIGTSTP) ::raise(SIGSTOP);
    return;
  }
  if (job_.all_ended()) {  // what is left is output, which a slow reader may not want any more
    job_.signalled(signal);
    impatient_ = true;
    return loop_.stop();
  }
  if (ending_ && signal == SIGINT) return kill_all();  // pressed again
  const bool first = !job_.decided();
  job_.signalled(signal);
  signal_all(signal, from_terminal);
  if (!first || ending_) return;
  ending_ = true;
  // No announcement yet: ranks that catch the signal may talk to each other while they save their work.
  resume_all();
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
      say(fmt::format("rdmarun: rank {} on {}: still running at the time limit of {} s (pid {})", rank,
                      host_of(rank), *how_.timeout_s, job_[rank].pid));
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
  const base::nanoseconds patience = impatient_ ? 0 : base::never;
  output_->finish(patience);
  if (errors_own_) errors_own_->finish(patience);
  if (how_.verbose)
    say(fmt::format("rdmarun: {} ranks ended with status {} after {:.2f} s", job_.size(), job_.status(),
                    static_cast<double>(base::steady_now() - begin_) / 1e9));
  errors_->finish(patience);
  return job_.status();
}

}  // namespace verbena::launcher
