#include "launcher/keeper.hpp"

#include "base/check.hpp"
#include "base/cores.hpp"
#include "base/fd_passing.hpp"
#include "launcher/descent.hpp"
#include "launcher/hosts/frame.hpp"
#include "launcher/start_crew.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

namespace verbena::launcher {
namespace {

/// The path that the rank's own PATH gives for `name`; `name` itself if it has a slash, or is nowhere to be found. What
/// is found but may not be executed counts only if nothing better comes, as for a shell.
std::string find_program(const char* name, const std::vector<char*>& environment) {
  if (std::strchr(name, '/') != nullptr || *name == '\0') return name;
  std::string_view folders = "/bin:/usr/bin";
  for (const char* variable : environment)  // the last one counts, as for the rank
    if (variable != nullptr && std::strncmp(variable, "PATH=", 5) == 0) folders = variable + 5;
  std::string forbidden;
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const std::string path = folder.empty() ? fmt::format("./{}", name) : fmt::format("{}/{}", folder, name);
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode)) {
      if (::access(path.c_str(), X_OK) == 0) return path;
      if (forbidden.empty()) forbidden = path;
    }
    if (colon == std::string_view::npos) return forbidden.empty() ? name : forbidden;
    folders.remove_prefix(colon + 1);
  }
}

/// As the kernel takes it: bit by bit in words of the machine.
std::vector<unsigned long> affinity_mask(const std::vector<unsigned>& cpus) {
  constexpr unsigned bits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const unsigned cpu : cpus) {
    if (mask.size() <= cpu / bits) mask.resize(cpu / bits + 1);
    mask[cpu / bits] |= 1UL << (cpu % bits);
  }
  return mask;
}

void point(std::vector<char*>& to, const std::vector<std::string>& strings) {
  for (const std::string& s : strings) to.push_back(const_cast<char*>(s.c_str()));
}

/// How many of so many ranks start at the same time. Helpers are threads, which count against the limits that ranks need.
unsigned ranks_at_once(std::size_t ranks) {
  constexpr std::size_t most = 4;
  return static_cast<unsigned>(std::clamp(std::min(base::mask_cpus().size(), ranks), std::size_t{1}, most));
}

class keeper {
 public:
  keeper(const keeper_legacy& legacy, base::unique_fd socket) : legacy_(legacy), socket_(std::move(socket)) {}
  [[noreturn]] void run();

 private:
  void obey();
  void start(std::uint32_t rank, const std::vector<unsigned>& cpus, base::unique_fd output,
             base::unique_fd errors);
  void take_plan(int file, int segment);
  void on_start(const start_task& task, const spawn_result& result);
  void signal_rank(pid_t pid, int signal, bool from_terminal) const;
  void signal_ranks(int signal, bool from_terminal);
  void resume_ranks();
  void reap();
  void report(const keeper_report& what);
  [[noreturn]] void end_all();

  const keeper_legacy legacy_;
  rank_plan plan_;
  base::unique_fd socket_;
  base::unique_fd children_;  // SIGCHLD
  base::unique_fd nothing_;   // /dev/null
  std::vector<std::string> added_;
  std::map<pid_t, std::uint32_t> ranks_;  // alive, or not yet waited for
  std::size_t settled_ = 0;               // ranks of which the last word has been said
  pid_t shares_terminal_ = -1;            // the rank that stays in the terminal's foreground group
  bool killing_ = false;                  // start nothing more
  bool none_left_ = false;                // nothing to wait for, as of the last look
  std::vector<std::string> paths_;        // of each program, once it has been looked for
  std::unique_ptr<start_crew> crew_;      // from the plan on
};

void keeper::run() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  children_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  nothing_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // Readers of rdmarun's output wait for its end, not for ours.
  ::dup2(nothing_.get(), 1);
  ::dup2(nothing_.get(), 2);
  while (true) {
    pollfd ready[3] = {{socket_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}, {crew_ ? crew_->event_fd() : -1, POLLIN, 0}};
    ::poll(ready, 3, killing_ && !none_left_ ? 10 : -1);
    if (ready[2].revents != 0) crew_->collect();
    if (ready[1].revents != 0) reap();
    if (ready[0].revents != 0) obey();
    if (killing_ && !none_left_) {
      kill_descent();
      reap();
    }
  }
}

void keeper::obey() {
  std::array<char, 64 * 1024> packet;
  base::fd_control control;
  iovec data{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  base::expect_fds(message, control);
  const long count = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (count < 0 && errno == EINTR) return;
  if (count < static_cast<long>(sizeof(keeper_order))) end_all();  // rdmarun is gone
  base::unique_fd fds[2];
  base::take_fds(message, fds);
  keeper_order order;
  std::memcpy(&order, packet.data(), sizeof order);
  switch (order.what) {
    case keeper_order::kind::plan:
      take_plan(fds[0].get(), fds[1].get());
      break;
    case keeper_order::kind::variables: {
      const char* at = packet.data() + sizeof order;
      const char* end = packet.data() + count;
      for (; at < end; at += std::strlen(at) + 1) added_.emplace_back(at);
      break;
    }
    case keeper_order::kind::start: {
      std::vector<unsigned> cpus((static_cast<std::size_t>(count) - sizeof order) / sizeof(unsigned));
      if (!cpus.empty())
        std::memcpy(cpus.data(), packet.data() + sizeof order, cpus.size() * sizeof(unsigned));
      start(order.rank, cpus, std::move(fds[0]), std::move(fds[1]));
      break;
    }
    case keeper_order::kind::signal:
      signal_ranks(order.signal, order.from_terminal);
      break;
    case keeper_order::kind::resume:
      resume_ranks();
      break;
    case keeper_order::kind::kill:
      killing_ = true;
      if (crew_) crew_->drop();
      reap();
      break;
    case keeper_order::kind::end:
      end_all();
  }
}

void keeper::take_plan(int file, int segment) {
  struct stat about {};
  if (::fstat(file, &about) != 0) end_all();
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::pread(file, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (count <= 0) end_all();
    at += static_cast<std::size_t>(count);
  }
  base::check(read_fields(bytes, plan_), "the keeper understands rdmarun");
  ::dup3(segment, legacy_.segment_place, O_CLOEXEC);
  if (plan_.input_rank < 0) ::dup2(nothing_.get(), 0);
  paths_.resize(plan_.programs.size());
  crew_ = std::make_unique<start_crew>(
      ranks_at_once(plan_.local_ranks.size()),
      [this](const start_task& task, const spawn_result& result) { on_start(task, result); });
}

void keeper::start(std::uint32_t rank, const std::vector<unsigned>& cpus, base::unique_fd output,
                   base::unique_fd errors) {
  const std::vector<std::uint32_t>& here = plan_.local_ranks;
  auto task = std::make_unique<start_task>();
  task->rank = rank;
  task->own = {
      fmt::format("VERBENA_RANK={}", rank), fmt::format("VERBENA_SIZE={}", plan_.program_of.size()),
      fmt::format("VERBENA_LOCAL_RANK={}", std::lower_bound(here.begin(), here.end(), rank) - here.begin()),
      fmt::format("VERBENA_LOCAL_SIZE={}", here.size()), fmt::format("PMIX_RANK={}", rank)};
  const std::uint32_t program = plan_.program_of[rank];
  point(task->arguments, plan_.programs[program]);
  point(task->environment, plan_.environment);
  if (paths_[program].empty()) paths_[program] = find_program(task->arguments.front(), task->environment);
  task->program = paths_[program];
  task->arguments.push_back(nullptr);
  // What has come from libpmix, and last what is the rank's own.
  point(task->environment, added_);
  point(task->environment, task->own);
  task->environment.push_back(nullptr);
  task->mask = affinity_mask(cpus);
  task->output = std::move(output);
  task->errors = std::move(errors);
  task->reads = static_cast<int>(rank) == plan_.input_rank;
  task->reads_terminal = task->reads && ::isatty(0) == 1;

  spawn_request& request = task->request;
  request.program = task->program.c_str();
  request.arguments = task->arguments.data();
  request.environment = task->environment.data();
  request.directory = plan_.directory.empty() ? nullptr : plan_.directory.c_str();
  request.input = task->reads ? 0 : nothing_.get();
  request.output = task->output.get();
  request.errors = task->errors.get();
  request.kept = legacy_.segment_place;
  request.own_group = !task->reads_terminal;  // in a group of its own, its first read would stop it (SIGTTIN)
  request.signal_mask = legacy_.signal_mask;
  request.cpus = task->mask;
  if (killing_)
    on_start(*task, {-1, start_step::make_process, ECANCELED});
  else
    crew_->start(std::move(task));
}

void keeper::on_start(const start_task& task, const spawn_result& result) {
  keeper_report answer;
  answer.rank = task.rank;
  if (result.pid < 0) {
    answer.what = keeper_report::kind::start_failed;
    answer.step = result.step;
    answer.value = result.error;
  } else {
    answer.what = keeper_report::kind::started;
    answer.pid = result.pid;
    answer.value = result.binding_error;
    ranks_[result.pid] = task.rank;
    if (task.reads_terminal) shares_terminal_ = result.pid;
  }
  if (task.reads) ::dup2(nothing_.get(), 0);  // only the rank holds the input open now
  report(answer);
  for (const auto& [signal, from_terminal] : task.signals) signal_rank(result.pid, signal, from_terminal);
}

void keeper::signal_rank(pid_t pid, int signal, bool from_terminal) const {
  if (pid <= 0) return;  // it was not started
  if (pid != shares_terminal_)
    ::kill(-pid, signal);
  else if (!from_terminal)
    ::kill(pid, signal);
}

void keeper::signal_ranks(int signal, bool from_terminal) {
  crew_->collect();
  for (const auto& [pid, rank] : ranks_) signal_rank(pid, signal, from_terminal);
  // Whoever was to start before it gets it once it has; to wait for that could take for ever, if a file system hangs.
  crew_->each_untold([&](start_task& task) { task.signals.emplace_back(signal, from_terminal); });
}

/// None that runs gets the signal: a program may have a use of its own for it, and it would take the stop away from a debugger
/// that is just attaching.
void keeper::resume_ranks() {
  crew_->collect();
  const std::vector<pid_t> stopped = stopped_groups();
  for (const auto& [pid, rank] : ranks_)
    if (std::binary_search(stopped.begin(), stopped.end(), ::getpgid(pid))) ::kill(pid == shares_terminal_ ? pid : -pid, SIGCONT);
}

void keeper::reap() {
  signalfd_siginfo ignored;
  while (::read(children_.get(), &ignored, sizeof ignored) > 0) {
  }
  std::vector<keeper_report> ended;
  int status = 0;
  while (true) {
    const bool more_may_come = crew_ && crew_->busy();  // looked at first: what is there then, waitpid knows
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    none_left_ = pid < 0 && errno == ECHILD && !more_may_come;
    if (pid <= 0) break;
    crew_->settle(pid);
    const auto at = ranks_.find(pid);
    if (at == ranks_.end()) continue;  // an orphan that came to us
    ended.push_back({keeper_report::kind::exited, start_step::execute, at->second, pid, status});
    ranks_.erase(at);
  }
  // Found dead together: the one that was killed is the cause, the ones that gave up are the consequence.
  std::sort(ended.begin(), ended.end(), [](const keeper_report& a, const keeper_report& b) {
    return std::pair{!WIFSIGNALED(a.value), a.rank} < std::pair{!WIFSIGNALED(b.value), b.rank};
  });
  for (const keeper_report& each : ended) report(each);
  // The order to end would say what is known already, and find nothing to do.
  if (plan_.leaves && none_left_ && settled_ == plan_.local_ranks.size()) ::_exit(0);
}

void keeper::report(const keeper_report& what) {
  while (::send(socket_.get(), &what, sizeof what, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) end_all();
  }
  if (what.what != keeper_report::kind::started) ++settled_;
}

void keeper::end_all() {
  if (crew_) crew_->drop();
  // A normal end finds nothing to wait for, and does not look through /proc.
  while (true) {
    const bool more_may_come = crew_ && crew_->busy();
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid > 0) continue;
    if (pid < 0 && errno == ECHILD && !more_may_come) break;
    if (crew_) crew_->collect();
    kill_descent();
    timespec pause{0, 2'000'000};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ::sigtimedwait(&child, nullptr, &pause);
  }
  ::_exit(0);
}

}  // namespace

base::unique_fd start_keeper(const keeper_legacy& legacy, pid_t& pid) {
  int ends[2];
  base::check(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair succeeds");
  base::unique_fd ours{ends[0]}, theirs{ends[1]};
  pid = ::fork();
  if (pid == 0) {
    ours.reset();
    if (legacy.parents_fd >= 0) ::close(legacy.parents_fd);
    ::prctl(PR_SET_NAME, "rdmarun-keeper");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    keeper{legacy, std::move(theirs)}.run();
  }
  if (pid < 0) return {};
  return ours;
}

bool send_plan(int socket, const rank_plan& plan, int segment_fd) {
  const base::unique_fd file{::memfd_create("verbena-plan", MFD_CLOEXEC)};
  if (!file) return false;
  const std::string bytes = write_fields(plan);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t count = ::write(file.get(), rest.data(), rest.size());
    if (count < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  keeper_order order{keeper_order::kind::plan};
  iovec data{&order, sizeof order};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  base::fd_control control;
  const int fds[] = {file.get(), segment_fd};
  base::attach_fds(message, control, fds);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

}  // namespace verbena::launcher
