// rdmarun: parse, prepare, fork the keeper, start the PMIx server, run. The order matters: the keeper is
// forked before any thread exists, and after everything that it must inherit.
#include "base/settings.hpp"
#include "launcher/environment.hpp"
#include "launcher/keeper.hpp"
#include "launcher/launch.hpp"
#include "launcher/options.hpp"
#include "launcher/pmix_server.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/segment_server.hpp"
#include "launcher/text.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <csignal>
#include <cstdio>

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

int run(const options& how) {
  std::string wrong;
  rank_plan plan;
  plan.arguments = how.program;
  plan.directory = how.directory;
  plan.environment = make_environment(how, wrong);
  if (!wrong.empty()) return refuse(status_usage, wrong);

  const unsigned cores = usable_cores();
  const unsigned size = how.count.value_or(cores);
  plan.size = size;
  wrong = raise_descriptor_limit(size);
  if (!wrong.empty()) return refuse(status_launcher, wrong);

  const std::string secret = random_name();
  pmix_job job{"verbena-" + secret, host_name(), size};
  segment_server segment{size, "verbena-segment-" + random_name()};
  plan.segment_fd = segment.fd();
  plan.environment.push_back(segment.variable());

  plan.signal_mask = block_signals();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t keeper_pid = 0;
  base::unique_fd keeper = start_keeper(plan, keeper_pid);
  if (!keeper) return refuse(status_launcher, "cannot start a process");
  release_standard_input();

  hidden_stderr chatter;
  if (size > cores && !how.quiet)
    chatter.print(fmt::format("rdmarun: {} ranks share {} core{}\n", size, cores, cores == 1 ? "" : "s"));
  pmix_server pmix;
  wrong = pmix.start(job);
  if (how.verbose) chatter.print(chatter.text());
  if (!wrong.empty()) {
    chatter.print(fmt::format("rdmarun: {}\n", wrong));
    return status_launcher;
  }
  if (how.verbose)
    chatter.print(fmt::format("rdmarun: {} ranks on {}, libpmix {}, namespace {}\n", size, job.host,
                              pmix_server::version(), job.name));
  launch one{how, size, job.host, chatter.user_fd(), segment};
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
