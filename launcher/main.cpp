// rdmarun: fork the keeper and begin libpmix's server, understand the options, look at the machine, run.
#include "base/check.hpp"
#include "base/cores.hpp"
#include "launcher/binder.hpp"
#include "launcher/hosts/agent.hpp"
#include "launcher/hosts/head.hpp"
#include "launcher/hosts/slurm.hpp"
#include "launcher/launch.hpp"
#include "launcher/local_node.hpp"
#include "launcher/options.hpp"
#include "launcher/pmix_server.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/request.hpp"
#include "launcher/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {
namespace {

/// What a job on this host can begin with before it is known what it is: the keeper, and libpmix's server, for which everything
/// else waits.
struct head_start {
  local_node here;
  std::optional<hidden_stderr> chatter;
};
const head_start* begun = nullptr;

int refuse(int status, const std::string& sentence) {
  const std::string line = fmt::format("rdmarun: {}\n", sentence);
  if (begun != nullptr)
    begun->chatter->print(line);
  else
    fmt::print(stderr, "{}", line);
  return status;
}

/// Null: no process can be made.
std::unique_ptr<head_start> begin_job() {
  raise_descriptor_limit(0);  // the ranks inherit the limit
  auto start = std::make_unique<head_start>();
  if (!start->here.fork_keeper()) return nullptr;
  start->chatter.emplace();
  start->here.prepare_server();
  begun = start.get();
  return start;
}

/// False, if it may be something else than a job on this host. It is enough to be right most of the time: what is not begun here is
/// begun later.
bool looks_like_a_job(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 5> others = {"-H", "-h", "--h", "--version", "--settings"};
  return words.size() > 1 && std::none_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("agent") != std::string::npos ||
           std::any_of(others.begin(), others.end(), [&word](std::string_view other) { return word.starts_with(other); });
  });
}

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : refuse(status_launcher, "cannot write to standard output");
}

/// All ranks on this host.
int run_here(const options& how, const std::string& host, const environment& found, std::unique_ptr<head_start> start) {
  const std::vector<unsigned> mask = base::mask_cpus();
  const unsigned cores =
      base::usable_cores(std::max(1U, static_cast<unsigned>(mask.size())), base::cpu_quota());
  std::string wrong;
  rank_plan plan;
  plan.environment = make_environment(how, found, wrong);
  plan.directory = how.directory;
  plan.input_rank = how.input_rank;
  plan.leaves = true;  // here all ranks have ended as soon as its own have
  plan.program_of = programs_of_ranks(how, cores);
  for (const program_part& part : how.programs) plan.programs.push_back(part.arguments);
  const auto size = static_cast<unsigned>(plan.program_of.size());
  if (wrong.empty()) wrong = check_request(how, size);
  if (wrong.empty() && how.no_oversubscribe && size > cores)
    wrong = fmt::format("{} ranks on {} core{}: refused because of --no-oversubscribe", size, cores,
                        cores == 1 ? "" : "s");
  if (!wrong.empty()) return refuse(status_usage, wrong);
  wrong = raise_descriptor_limit(size);
  if (!wrong.empty()) return refuse(status_launcher, wrong);

  std::vector<std::uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0U);
  const std::vector<std::uint32_t> programs = plan.program_of;
  const std::vector<std::string> misspelt =
      how.quiet ? std::vector<std::string>{} : misspelt_settings(plan.environment);
  event_loop loop;  // outlives the node, which is watched there
  const std::unique_ptr<head_start> job = start ? std::move(start) : begin_job();
  if (!job) return refuse(status_launcher, "cannot start a process");
  local_node& here = job->here;
  const hidden_stderr& chatter = *job->chatter;
  wrong = here.describe(size, ranks, cores, std::move(plan));
  if (!wrong.empty()) return refuse(status_launcher, wrong);
  const bound_job& bound = here.bind(how.bind, how.map, mask, cores);
  for (const std::string& sentence : misspelt) chatter.print(fmt::format("rdmarun: {}\n", sentence));
  if (size > cores && !how.quiet)
    chatter.print(fmt::format("rdmarun: {} ranks share {} core{}\n", size, cores, cores == 1 ? "" : "s"));
  if (bound.where.bound() && bound.where.shares_with_others && !how.quiet)
    chatter.print(
        "rdmarun: another job has bound ranks to some of the cores that --bind gives to this one\n");
  if (how.report_bindings) chatter.print(describe_bindings(bound, ranks, mask, host));
  launch one{loop, how, programs, std::vector<std::uint32_t>(size, 0), {host}, chatter.user_fd()};
  local_node::outputs outputs;
  outputs.on_pipes = [&one](std::uint32_t rank, base::unique_fd output, base::unique_fd errors) {
    one.output().add(std::move(output), one.prefix_of(rank));
    one.errors().add(std::move(errors), one.prefix_of(rank));
  };
  if (!how.output_directory.empty())
    outputs.open_files = [&one](std::uint32_t rank) { return one.open_files(rank); };
  here.attach(loop, std::move(outputs), one.events_of(0));
  wrong = here.start_server(
      {"verbena-" + random_name(), {host}, std::vector<std::uint32_t>(size, 0), 0, programs, {}, {}});
  if (how.verbose) chatter.print(chatter.text());
  if (!wrong.empty()) {
    chatter.print(fmt::format("rdmarun: {}\n", wrong));
    return status_launcher;
  }
  if (how.verbose)
    chatter.print(fmt::format("rdmarun: {} ranks on {}, libpmix {}\n", size, host, pmix_server::version()));
  return one.run({&here});
}

int begin(int argc, char** argv) {
  if (argc == 0) return status_usage;
  whereabouts here{host_name(), {}};
  const std::string not_understood = find_allocation([](const char* name) { return std::getenv(name); }, here.slurm);
  const environment found = without_outer_job(environ);  // before libpmix has a part in it
  const std::vector<std::string> words{argv + 1, argv + argc};
  std::unique_ptr<head_start> start;
  if (!here.slurm && not_understood.empty() && looks_like_a_job(words)) start = begin_job();
  options how;
  if (const std::string wrong = parse_options(words, how); !wrong.empty())
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
    case action::agent:
      return run_agent(how.agent_socket);
    case action::run:
      break;
  }
  if (!how.hostfile.empty()) {
    std::ifstream file(how.hostfile);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open())
      return refuse(status_usage,
                    fmt::format("cannot read the host file '{}': {}", how.hostfile, std::strerror(errno)));
    if (const std::string wrong = parse_hostfile(text, how.hostfile, how.hosts); !wrong.empty())
      return refuse(status_usage, wrong);
  }
  if (how.hosts.empty()) {
    if (!not_understood.empty()) return refuse(status_usage, not_understood);
    if (here.slurm) how.hosts = here.slurm->hosts;
  }
  if (!needs_other_hosts(how, here)) return run_here(how, here.host, found, std::move(start));
  base::check(start == nullptr, "whoever names hosts is recognised before");
  return run_on_hosts(how, here);
}

}  // namespace
}  // namespace verbena::launcher

int main(int argc, char** argv) {
  using namespace verbena::launcher;
  arrange_heap();
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
