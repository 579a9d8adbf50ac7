// rdmarun: parse, prepare, fork the keeper, start the PMIx server, look at the machine, run. The order matters: the
// keeper is forked before any thread exists, and after everything that it must inherit.
#include "base/cores.hpp"
#include "base/settings.hpp"
#include "launcher/binder.hpp"
#include "launcher/descent.hpp"
#include "launcher/environment.hpp"
#include "launcher/keeper.hpp"
#include "launcher/launch.hpp"
#include "launcher/options.hpp"
#include "launcher/pmix_server.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/segment_server.hpp"
#include "launcher/text.hpp"
#include "launcher/topology.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

namespace verbena::launcher {
namespace {

int refuse(int status, const std::string& sentence) {
  fmt::print(stderr, "rdmarun: {}\n", sentence);
  return status;
}

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : refuse(status_launcher, "cannot write to standard output");
}

/// The ranks' environment, or a sentence in `wrong`.
environment make_environment(const options& how, std::string& wrong) {
  environment variables = without_outer_job(environ);
  if (!how.fabric.empty()) set_variable(variables, "VERBENA_FABRIC=" + how.fabric);
  if (!how.device.empty()) set_variable(variables, "VERBENA_DEVICE=" + how.device);
  if (how.explain) set_variable(variables, "VERBENA_EXPLAIN=1");
  for (const std::string& request : how.variables)
    if (const std::string right = apply_request(variables, request); !right.empty()) {
      wrong = fmt::format("option '-x {}' is not {}", request, right);
      return variables;
    }
  try {
    base::read_settings([&](const char* name) { return find_variable(variables, name); });
  } catch (const error& refused) {
    wrong = refused.what();  // once, here, and not by each rank
  }
  return variables;
}

/// What can be known to be wrong before anything is started; empty if nothing is.
std::string check_request(const options& how, unsigned size, unsigned cores, const std::string& host) {
  for (const host_slots& each : how.hosts) {
    const bool here = each.name == "localhost" || each.name == "127.0.0.1" || each.name == "::1" ||
                      each.name == host || each.name == host.substr(0, host.find('.'));
    if (!here)
      return fmt::format("host '{}' is not this one ({}): this release starts ranks on its own host only",
                         each.name, host);
  }
  if (how.input_rank >= static_cast<int>(size))
    return fmt::format("option '--stdin {}': the last rank of this job is {}", how.input_rank, size - 1);
  if (how.no_oversubscribe && size > cores)
    return fmt::format("{} ranks on {} core{}: refused because of --no-oversubscribe", size, cores,
                       cores == 1 ? "" : "s");
  if (!how.output_directory.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(how.output_directory, failed);
    if (failed)
      return fmt::format("cannot make the directory '{}': {}", how.output_directory, failed.message());
  }
  return {};
}

int run(const options& how) {
  const std::vector<unsigned> mask = base::mask_cpus();
  const unsigned cores =
      base::usable_cores(std::max(1U, static_cast<unsigned>(mask.size())), base::cpu_quota());
  const std::string host = host_name();
  std::string wrong;
  rank_plan plan;
  plan.environment = make_environment(how, wrong);
  plan.directory = how.directory;
  plan.input_rank = how.input_rank;
  plan.program_of = programs_of_ranks(how, cores);
  for (const program_part& part : how.programs) plan.programs.push_back(part.arguments);
  const auto size = static_cast<unsigned>(plan.program_of.size());
  if (wrong.empty()) wrong = check_request(how, size, cores, host);
  if (!wrong.empty()) return refuse(status_usage, wrong);
  wrong = raise_descriptor_limit(size);
  if (!wrong.empty()) return refuse(status_launcher, wrong);

  segment_server segment{size, "verbena-segment-" + random_name()};
  plan.segment_fd = segment.fd();
  plan.environment.push_back(segment.variable());

  plan.signal_mask = block_signals();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Seldom any: a shell that becomes rdmarun (exec) keeps its background jobs.
  siginfo_t none{};
  std::vector<pid_t> strangers;
  if (::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT) == 0) strangers = find_descent(::getpid());
  const core_locks locks;  // the keeper has a part in them: cores are held until the last rank is gone
  pid_t keeper_pid = 0;
  base::unique_fd keeper = start_keeper(plan, keeper_pid);
  if (!keeper) return refuse(status_launcher, "cannot start a process");
  release_standard_input();

  hidden_stderr chatter;
  keep_hwloc_small();
  pmix_server pmix;
  pmix.prepare();
  const bound_job bound = bind_job(how.bind, size, mask, cores, locks);
  segment.share_cores(bound.where.cores);
  pmix_job job{"verbena-" + random_name(), host, plan.program_of, {}, {}};
  for (const auto& cpus : bound.where.cpus) {
    job.cpuset.push_back(describe_cpus(cpus));
    job.locality.push_back(locality_of(cpus, bound.processors));
  }
  if (!how.quiet)
    for (const std::string& sentence : misspelt_settings(plan.environment))
      chatter.print(fmt::format("rdmarun: {}\n", sentence));
  if (size > cores && !how.quiet)
    chatter.print(fmt::format("rdmarun: {} ranks share {} core{}\n", size, cores, cores == 1 ? "" : "s"));
  if (bound.where.bound() && bound.where.shares_with_others && !how.quiet)
    chatter.print(
        "rdmarun: another job has bound ranks to some of the cores that --bind gives to this one\n");
  if (how.report_bindings) chatter.print(describe_bindings(bound, size, mask, host));
  wrong = pmix.start(job);
  if (how.verbose) chatter.print(chatter.text());
  if (!wrong.empty()) {
    chatter.print(fmt::format("rdmarun: {}\n", wrong));
    return status_launcher;
  }
  if (how.verbose)
    chatter.print(fmt::format("rdmarun: {} ranks on {}, libpmix {}\n", size, host, pmix_server::version()));
  launch one{how, plan.program_of, bound.where.cpus, host, chatter.user_fd(), segment};
  one.know_keeper(keeper_pid, std::move(strangers));
  return one.run(std::move(keeper), pmix);
}

int begin(int argc, char** argv) {
  if (argc == 0) return status_usage;
  options how;
  if (const std::string wrong = parse_options({argv + 1, argv + argc}, how); !wrong.empty())
    return refuse(status_usage, wrong + " (rdmarun --help)");
  switch (how.what) {
    case action::help:
      return print(help_text());
    case action::help_status:
      return print(status_text());
    case action::manual:
      return print(manual_text());
    case action::version:
      return print(
          fmt::format("rdmarun (Verbena) {}, libpmix {}\n", VERBENA_VERSION, pmix_server::version()));
    case action::settings:
      return print(settings_text());
    case action::run:
      break;
  }
  return run(how);
}

}  // namespace
}  // namespace verbena::launcher

int main(int argc, char** argv) {
  using namespace verbena::launcher;
  ::mallopt(M_ARENA_MAX, 1);  // libpmix's threads share ours: a heap of their own costs them a tenth of a millisecond each
  open_missing_descriptors();
  int status = status_launcher;
  try {
    status = begin(argc, argv);
  } catch (const std::exception& failed) {
    fmt::print(stderr, "rdmarun: {}\n", failed.what());
  }
  // libpmix's threads are still there, and its orderly end is of no use to anybody: all output has been
  // written.
  std::fflush(nullptr);
  ::_exit(status);
}
