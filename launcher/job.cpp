#include "launcher/job.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace verbena::launcher {

job::job(std::uint32_t size, std::string host, base::nanoseconds now)
    : job(std::vector<std::uint32_t>(size, 0), {std::move(host)}, now) {}

job::job(std::vector<std::uint32_t> host_of, std::vector<std::string> hosts, base::nanoseconds now)
    : ranks_(host_of.size()), host_of_(std::move(host_of)), hosts_(std::move(hosts)), begin_(now) {}

std::string job::who(std::uint32_t rank) const {
  return fmt::format("rdmarun: rank {} on {}", rank, hosts_[host_of_[rank]]);
}

std::string job::age(base::nanoseconds now) const {
  return fmt::format("after {:.2f} s", static_cast<double>(now - begin_) / 1e9);
}

void job::decide(int status, std::string line) {
  if (status_) return;
  status_ = status;
  line_ = std::move(line);
}

bool job::fail(std::uint32_t rank, failure why, int status, std::string line) {
  if (ranks_[rank].why == failure::none) ranks_[rank].why = why;
  decide(status, std::move(line));
  return true;
}

void job::started(std::uint32_t rank, pid_t pid) {
  ranks_[rank].pid = pid;
  ranks_[rank].phase = rank_phase::running;
}

bool job::start_failed(std::uint32_t rank, start_step step, int error, std::string_view subject) {
  ranks_[rank].phase = rank_phase::ended;
  ranks_[rank].wait_status = W_EXITCODE(error == ENOENT ? status_not_found : status_not_runnable, 0);
  ++ended_;
  switch (step) {
    case start_step::enter_directory:
      return fail(
          rank, failure::to_start, status_not_runnable,
          fmt::format("{}: cannot enter the directory '{}': {}", who(rank), subject, std::strerror(error)));
    case start_step::make_process:
      return fail(rank, failure::to_start, status_launcher,
                  fmt::format("{}: cannot start a process: {}", who(rank), std::strerror(error)));
    case start_step::execute:
      break;
  }
  return fail(rank, failure::to_start, error == ENOENT ? status_not_found : status_not_runnable,
              fmt::format("{}: cannot run '{}': {}", who(rank), subject, std::strerror(error)));
}

std::optional<std::uint32_t> job::joined(std::uint32_t rank, base::nanoseconds now) {
  if (!ranks_[rank].joined) ++joined_now_;
  ranks_[rank].joined = true;
  ranks_[rank].left = false;
  if (!ended_outside_) return std::nullopt;
  const std::string line = fmt::format("{}: ended with status 0 without joining the job that rank {} has joined, {}",
                                       who(*ended_outside_), rank, age(now));
  fail(*ended_outside_, failure::without_leaving, 1, line);
  return ended_outside_;
}

void job::left(std::uint32_t rank) {
  if (ranks_[rank].joined) --joined_now_;
  ranks_[rank].joined = false;
  ranks_[rank].left = true;
}

bool job::aborted(std::uint32_t rank, int code, std::string_view why, base::nanoseconds now) {
  const int status = (code & 0xff) != 0 ? code & 0xff : 1;
  ranks_[rank].wait_status = W_EXITCODE(status, 0);  // what the others are told; its own exit follows
  return fail(rank, failure::by_abort, status,
              fmt::format("{}: aborted the job with status {} {}{}{}", who(rank), code, age(now),
                          why.empty() ? "" : ": ", why));
}

bool job::exited(std::uint32_t rank, int wait_status, base::nanoseconds now, std::string_view core) {
  rank_entry& entry = ranks_[rank];
  entry.phase = rank_phase::ended;
  entry.wait_status = wait_status;
  ++ended_;
  const bool was_joined = entry.joined;
  if (was_joined) {
    entry.joined = false;
    --joined_now_;
  }
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fail(
        rank, failure::by_signal, status_signal + signal,
        fmt::format("{}: killed by signal {} ({}) {}{}{}", who(rank), signal, ::strsignal(signal), age(now),
                    WCOREDUMP(wait_status) ? ", " : "", WCOREDUMP(wait_status) ? core : ""));
  }
  const int status = WEXITSTATUS(wait_status);
  if (status != 0)
    return fail(rank, failure::by_status, status,
                fmt::format("{}: exited with status {} {}", who(rank), status, age(now)));
  if (was_joined)
    return fail(rank, failure::without_leaving, 1,
                fmt::format("{}: exited with status 0 without leaving the job, {}", who(rank), age(now)));
  if (entry.left) return false;
  if (joined_now_ > 0)
    return fail(rank, failure::without_leaving, 1,
                fmt::format("{}: exited with status 0 without joining the job that others have joined, {}",
                            who(rank), age(now)));
  if (!ended_outside_) ended_outside_ = rank;
  return false;
}

bool job::lost(std::uint32_t rank) {
  rank_entry& entry = ranks_[rank];
  if (entry.phase == rank_phase::ended) return false;
  entry.phase = rank_phase::ended;
  if (entry.joined) --joined_now_;
  entry.joined = false;
  entry.wait_status = SIGKILL;  // as those who wait for it are told
  if (entry.why == failure::none) entry.why = failure::with_its_host;
  ++ended_;
  return true;
}

void job::signalled(int signal) {
  decide(status_signal + signal, {});
}

void job::timed_out() {
  decide(status_timeout, {});
}

void job::launcher_failed(std::string line) {
  decide(status_launcher, std::move(line));
}

}  // namespace verbena::launcher
