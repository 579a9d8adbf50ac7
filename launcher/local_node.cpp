#include "launcher/local_node.hpp"

#include "launcher/core_file.hpp"
#include "launcher/descent.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/topology.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace verbena::launcher {

local_node::~local_node() {
  keeper_.reset();
  keeper_socket_.reset();
  if (keeper_pid_ > 0)  // there was no job after all
    while (::waitpid(keeper_pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

bool local_node::fork_keeper(int parents_fd) {
  segment_place_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const keeper_legacy legacy{block_signals(), parents_fd, segment_place_.get()};
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Seldom any: a shell that becomes rdmarun (exec) keeps its background jobs.
  siginfo_t none{};
  if (::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT) == 0) strangers_ = find_descent(::getpid());
  keeper_socket_ = start_keeper(legacy, keeper_pid_);
  if (!keeper_socket_) return false;
  release_standard_input();
  return true;
}

std::string local_node::describe(std::uint32_t job_size, std::vector<std::uint32_t> ranks, unsigned cores, rank_plan plan) {
  ranks_ = std::move(ranks);
  segment_ = std::make_unique<segment_server>(job_size, ranks_, cores, "verbena-segment-" + random_name());
  segment_->move_to(std::move(segment_place_));
  plan.local_ranks = ranks_;
  plan.environment.push_back(segment_->variable());
  directory_ = plan.directory;
  if (send_plan(keeper_socket_.get(), plan, segment_->fd())) return {};
  return fmt::format("cannot tell the keeper what to start: {}", std::strerror(errno));
}

void local_node::prepare_server() {
  keep_hwloc_small();
  pmix_.prepare();
  fill_heap();
}

const bound_job& local_node::bind(binding policy, mapping map, const std::vector<unsigned>& mask,
                                  unsigned usable) {
  bound_ = bind_job(policy, map, static_cast<unsigned>(ranks_.size()), mask, usable, locks_);
  segment_->share_cores(bound_.where.cores);
  return bound_;
}

std::string local_node::start_server(pmix_job job) {
  for (const auto& cpus : bound_.where.cpus) {
    job.cpuset.push_back(describe_cpus(cpus));
    job.locality.push_back(locality_of(cpus, bound_.processors));
  }
  return pmix_.start(job);
}

void local_node::attach(event_loop& loop, outputs where, node_events tell) {
  tell_ = std::move(tell);
  loop.watch(pmix_.event_fd(), EPOLLIN, [this](std::uint32_t) { tell_pmix_events(); });
  segment_->serve(loop);
  keeper_link::callbacks call;
  call.on_pipes = std::move(where.on_pipes);
  call.open_files = std::move(where.open_files);
  call.on_report = [this](const keeper_report& report) { on_report(report); };
  call.on_gone = [this] { on_keeper_gone(); };
  call.on_no_output = [this](int error) { tell_.on_no_output(error); };
  keeper_ = std::make_unique<keeper_link>(loop, std::move(keeper_socket_), std::move(call));
}

void local_node::start() {
  keeper_->send_environment(pmix_.environment());
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    keeper_->start(ranks_[i], i < bound_.where.cpus.size() ? bound_.where.cpus[i] : std::vector<unsigned>{});
}

void local_node::end() {
  if (end_ordered_) return;
  end_ordered_ = true;
  keeper_->end();
}

void local_node::tell_pmix_events() {
  for (const pmix_event& event : pmix_.take_events()) tell_.on_pmix(event);
}

void local_node::on_report(const keeper_report& report) {
  tell_pmix_events();  // joining and leaving happened before the exit that is reported here
  const bool dumped = report.what == keeper_report::kind::exited && WCOREDUMP(report.value);
  tell_.on_report(report, dumped ? describe_core(report.pid, directory_) : std::string{});
}

void local_node::on_keeper_gone() {
  // After an orderly end there is only the keeper itself to wait for.
  if (end_ordered_) {
    while (::waitpid(keeper_pid_, nullptr, 0) < 0 && errno == EINTR) {  // it is leaving: nothing to sleep for
    }
    keeper_pid_ = -1;
    return tell_.on_gone({});
  }
  segment_->announce_ending();
  keeper_pid_ = -1;
  // Orphans come to us, since we are a subreaper too (the ranks die by their parent-death signal). Children that a shell had
  // before it became rdmarun are not ours: they are neither waited for nor killed.
  const base::nanoseconds limit = base::steady_now() + 2 * base::second;
  for (pid_t pid;
       ((pid = ::waitpid(-1, nullptr, WNOHANG)) >= 0 || errno != ECHILD) && base::steady_now() < limit;) {
    if (pid > 0) continue;
    if (!kill_descent(strangers_) && !strangers_.empty()) break;  // those that are left are not ours
    ::usleep(200);
  }
  tell_.on_gone("the process that watches over the ranks was killed; the job is ended");
}

}  // namespace verbena::launcher
