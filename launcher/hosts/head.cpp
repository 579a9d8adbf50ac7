#include "launcher/hosts/head.hpp"

#include "launcher/hosts/agents.hpp"
#include "launcher/hosts/input.hpp"
#include "launcher/hosts/meetings.hpp"
#include "launcher/hosts/remote_node.hpp"
#include "launcher/launch.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/request.hpp"
#include "launcher/words.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>

namespace verbena::launcher {
namespace {

class head {
 public:
  head(const options& how, const whereabouts& here) : how_(how), agents_(loop_, how_, here) {
    // The ranks start where the user is, on each host.
    std::error_code none;
    const std::filesystem::path folder = std::filesystem::current_path(none);
    how_.directory = (how_.directory.empty() ? folder : folder / how_.directory).string();
  }

  int run();

 private:
  int refuse(int status, const std::string& sentence) const;
  std::string map();
  std::string prepare(const environment& variables);
  int launch_job();
  bool take_output(launch& job, std::uint32_t rank, unsigned which, std::string_view bytes);
  void connect(launch& job, meetings& between, std::uint32_t index);

  options how_;
  event_loop loop_;
  agents agents_;
  std::vector<std::uint32_t> programs_;  // of each rank
  std::vector<std::uint32_t> host_of_;   // of each rank, an index of agents_.all()
  std::vector<std::unique_ptr<remote_node>> nodes_;
  std::map<std::uint32_t, std::array<std::size_t, 2>> streams_;    // of each rank that has written
  std::map<std::uint32_t, std::array<base::unique_fd, 2>> files_;  // with --output
};

int head::refuse(int status, const std::string& sentence) const {
  fmt::print(stderr, "rdmarun: {}\n", sentence);
  return status;
}

int head::run() {
  std::string wrong;
  const environment variables = make_environment(how_, without_outer_job(environ), wrong);
  const unsigned slots =
      std::accumulate(how_.hosts.begin(), how_.hosts.end(), 0U,
                      [](unsigned sum, const host_slots& each) { return sum + each.slots; });
  programs_ = programs_of_ranks(how_, slots);
  if (wrong.empty()) wrong = check_request(how_, static_cast<unsigned>(programs_.size()));
  if (!wrong.empty()) return refuse(status_usage, wrong);
  agents_.obey(settings_of(variables));
  // A connection, a process and what it says for each host; the files of --output.
  wrong = raise_descriptor_limit(
      static_cast<unsigned>(how_.hosts.size() + (how_.output_directory.empty() ? 0 : programs_.size())));
  if (wrong.empty()) wrong = agents_.gather();
  if (!wrong.empty()) return refuse(status_launcher, wrong);
  if (!how_.quiet)
    for (const std::string& sentence : misspelt_settings(variables))
      fmt::print(stderr, "rdmarun: {}\n", sentence);
  wrong = map();
  if (!wrong.empty()) return refuse(status_usage, wrong);
  wrong = prepare(variables);
  if (!wrong.empty()) return refuse(status_launcher, wrong);
  const int status = launch_job();
  agents_.finish();
  return status;
}

/// Gives the ranks to the hosts, and lets those go that get none.
std::string head::map() {
  agents_.merge();
  auto& all = agents_.all();
  std::vector<unsigned> slots;
  for (const auto& each : all) slots.push_back(each->slots);
  host_of_ = map_ranks(how_.map, slots, static_cast<unsigned>(programs_.size()));
  for (std::size_t i = all.size(); i-- > 0;) {
    const auto ranks = static_cast<unsigned>(std::count(host_of_.begin(), host_of_.end(), i));
    if (how_.no_oversubscribe && ranks > all[i]->hello.cores)
      return fmt::format("{} ranks on {} core{} of {}: refused because of --no-oversubscribe", ranks,
                         all[i]->hello.cores, all[i]->hello.cores == 1 ? "" : "s", all[i]->name);
    if (ranks > 0) continue;
    agents_.dismiss(i);
    for (std::uint32_t& host : host_of_)
      if (host > i) --host;
  }
  return {};
}

/// Tells each agent the job; returns when all are ready, or one is not.
std::string head::prepare(const environment& variables) {
  auto& all = agents_.all();
  plan_message plan;
  plan.job_name = "verbena-" + random_name();
  for (const auto& each : all) plan.hosts.push_back(each->name);
  plan.host_of = host_of_;
  plan.program_of = programs_;
  for (const program_part& part : how_.programs) plan.programs.push_back(part.arguments);
  plan.environment = variables;
  plan.directory = how_.directory;
  plan.bind = static_cast<std::uint8_t>(how_.bind);
  plan.map = static_cast<std::uint8_t>(how_.map);
  plan.report_bindings = how_.report_bindings;
  plan.quiet = how_.quiet;
  std::string wrong;
  std::size_t ready = 0;
  std::vector<bool> answered(all.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    agent_entry& one = *all[i];
    one.on_frame = [&, i](frame_kind kind, const std::string& payload) {
      ready_message answer;
      if (kind != frame_kind::ready || !read_fields(payload, answer))
        answer.wrong = "its agent does not answer as it should";
      if (!how_.quiet || !answer.wrong.empty()) fmt::print(stderr, "{}", answer.remarks);
      if (!answer.wrong.empty()) wrong = fmt::format("host {}: {}", all[i]->name, answer.wrong);
      answered[i] = true;
      if (++ready == all.size() || !wrong.empty()) loop_.stop();
    };
    one.on_closed = [&, i](int) {
      if (wrong.empty()) wrong = fmt::format("host {}: rdmarun's agent there has gone away", all[i]->name);
      loop_.stop();
    };
    plan.here = i;
    // The agent of this host has our standard input, and can give it to a rank; to others it is sent, if somebody asked for that.
    const bool reads = how_.input_rank >= 0 && host_of_[static_cast<std::size_t>(how_.input_rank)] == i &&
                       (one.own || how_.input_asked);
    plan.input_rank = reads ? how_.input_rank : -1;
    plan.input_is_sent = reads && !one.own;
    if (reads && one.own) release_standard_input();
    one.link->send(plan);
  }
  const event_loop::timer limit = loop_.after(agents::patience, [&] {
    for (std::size_t i = 0; i < all.size() && wrong.empty(); ++i)
      if (!answered[i])
        wrong = fmt::format("host {}: rdmarun's agent there has not got ready within {} s", all[i]->name,
                            agents::patience / base::second);
    loop_.stop();
  });
  loop_.run();
  loop_.cancel(limit);
  return wrong;
}

bool head::take_output(launch& job, std::uint32_t rank, unsigned which, std::string_view bytes) {
  if (how_.output_directory.empty()) {
    channel& to = which == 0 ? job.output() : job.errors();
    const auto known = streams_.find(rank);
    const auto& its = known != streams_.end() ? known->second
                                              : (streams_[rank] = {job.output().open(job.prefix_of(rank)),
                                                                   job.errors().open(job.prefix_of(rank))});
    return to.take(its[which], bytes);
  }
  const int file = files_[rank][which].get();
  while (!bytes.empty()) {
    const long count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      job.fail_output(errno);
      break;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void head::connect(launch& job, meetings& between, std::uint32_t index) {
  agent_entry& one = *agents_.all()[index];
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < host_of_.size(); ++rank)
    if (host_of_[rank] == index) ranks.push_back(rank);
  nodes_.push_back(std::make_unique<remote_node>(one.name, std::move(ranks), *one.link));
  remote_node& node = *nodes_.back();
  if (one.own) node.share_terminal();
  remote_node::callbacks call;
  call.head = job.events_of(index);
  call.on_output = [this, &job](std::uint32_t rank, unsigned which, std::string_view bytes) {
    return take_output(job, rank, which, bytes);
  };
  call.on_fence = [&between, index](fence_message&& m) {
    between.fence(index, m.ticket, m.ranks, std::move(m.data));
  };
  call.on_modex_wanted = [&between, index](const modex_wanted_message& m) {
    between.modex_wanted(index, m.ticket, m.rank);
  };
  call.on_modex_ready = [&between](const modex_ready_message& m) {
    between.modex_ready(m.ticket, m.good, m.data);
  };
  node.attach(std::move(call));
  one.on_frame = [&node](frame_kind kind, const std::string& payload) { node.on_frame(kind, payload); };
  one.on_closed = [&node, of = &one](int error) {
    of->lost = true;
    node.on_closed(error);
  };
}

int head::launch_job() {
  auto& all = agents_.all();
  block_signals();
  std::vector<std::string> names;
  for (const auto& each : all) names.push_back(each->name);
  launch job{loop_, how_, programs_, host_of_, names, 2};
  if (!how_.output_directory.empty())
    for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
      files_[rank] = job.open_files(rank);
      if (!files_[rank][0] || !files_[rank][1])
        return refuse(status_launcher,
                      fmt::format("cannot write into '{}': {}", how_.output_directory, std::strerror(errno)));
    }
  if (how_.verbose) fmt::print(stderr, "rdmarun: {} ranks on {}\n", programs_.size(), joined(names, ", "));
  meetings between{host_of_,
                   {[this](std::uint32_t host, std::uint64_t ticket, bool good, const std::string& data) {
                      agents_.all()[host]->link->send(fence_done_message{ticket, good, data});
                    },
                    [this](std::uint32_t host, std::uint64_t ticket, std::uint32_t rank) {
                      agents_.all()[host]->link->send(modex_fetch_message{ticket, rank});
                    },
                    [this](std::uint32_t host, std::uint64_t ticket, bool good, const std::string& data) {
                      agents_.all()[host]->link->send(modex_done_message{ticket, good, data});
                    }}};
  std::vector<node*> nodes;
  for (std::uint32_t i = 0; i < all.size(); ++i) connect(job, between, i);
  std::optional<input_source> input;
  if (how_.input_asked && how_.input_rank >= 0) {
    const std::uint32_t reader = host_of_[static_cast<std::size_t>(how_.input_rank)];
    if (!all[reader]->own) {
      nodes_[reader]->on_input_taken([&input](std::uint32_t bytes, bool closed) {
        if (closed) input->stop();
        return input->taken(bytes);
      });
      input.emplace(loop_, [to = all[reader]->link.get()](std::string_view bytes) {
        to->send(input_message{std::string(bytes)});
      });
    }
  }
  for (const auto& each : nodes_) nodes.push_back(each.get());
  const auto room = [this, one_file = &job.output() == &job.errors()](unsigned which) {
    for (const auto& each : nodes_) {
      each->give_credit(which);
      if (one_file) each->give_credit(1);
    }
  };
  job.errors().on_room([room] { room(1); });
  job.output().on_room([room] { room(0); });  // last: the two may be one
  return job.run(std::move(nodes));
}

}  // namespace

int run_on_hosts(const options& how, const whereabouts& here) {
  return head{how, here}.run();
}

}  // namespace verbena::launcher
