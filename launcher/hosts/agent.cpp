#include "launcher/hosts/agent.hpp"

#include "base/cores.hpp"
#include "launcher/hosts/call_back.hpp"
#include "launcher/hosts/connection.hpp"
#include "launcher/hosts/identity.hpp"
#include "launcher/hosts/input.hpp"
#include "launcher/hosts/messages.hpp"
#include "launcher/hosts/outgoing.hpp"
#include "launcher/local_node.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/request.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace verbena::launcher {
namespace {

constexpr base::nanoseconds order_patience = 10 * base::second;
constexpr base::nanoseconds call_patience = 10 * base::second;
/// For rdmarun to close the connection once everything has been said.
constexpr base::nanoseconds farewell = 5 * base::second;

/// The first line of the standard input, byte by byte: what follows is not ours.
std::string read_line(base::nanoseconds patience) {
  std::string line;
  const base::nanoseconds limit = base::steady_now() + patience;
  for (char byte = 0; line.size() < 65536;) {
    pollfd input{0, POLLIN, 0};
    const base::nanoseconds left = limit - base::steady_now();
    if (left <= 0 || ::poll(&input, 1, static_cast<int>(left / base::millisecond) + 1) <= 0) break;
    if (::read(0, &byte, 1) != 1 || byte == '\n') break;
    line += byte;
  }
  return line;
}

bool makes_sense(const plan_message& plan) {
  const auto below = [](const std::vector<std::uint32_t>& numbers, std::size_t limit) {
    return std::all_of(numbers.begin(), numbers.end(), [limit](std::uint32_t n) { return n < limit; });
  };
  return !plan.host_of.empty() && plan.program_of.size() == plan.host_of.size() &&
         plan.here < plan.hosts.size() && below(plan.host_of, plan.hosts.size()) &&
         below(plan.program_of, plan.programs.size()) &&
         std::is_sorted(plan.program_of.begin(), plan.program_of.end()) &&
         std::none_of(plan.programs.begin(), plan.programs.end(),
                      [](const auto& words) { return words.empty(); }) &&
         std::find(plan.host_of.begin(), plan.host_of.end(), plan.here) != plan.host_of.end();
}

class agent {
 public:
  explicit agent(base::unique_fd socket)
      : link_(loop_, std::move(socket),
              {[this](frame_kind kind, const std::string& payload) { on_frame(kind, payload); },
               [this](int) { on_closed(); }}),
        outputs_(loop_, [this](std::uint32_t rank, std::uint8_t which, std::string_view bytes) {
          link_.send(output_message{rank, which, std::string(bytes)});
        }) {}

  int run();

 private:
  void on_frame(frame_kind kind, const std::string& payload);
  void on_plan(plan_message&& plan);
  std::string prepare(plan_message& plan, std::string& remarks);
  void on_pmix(const pmix_event& event);
  void on_gone(const std::string& why);
  void on_closed();
  void leave();

  event_loop loop_;
  connection link_;
  outgoing outputs_;
  std::optional<input_pipe> input_;
  std::optional<hidden_stderr> chatter_;
  std::unique_ptr<local_node> node_;
  std::uint32_t job_size_ = 0;
  bool attached_ = false;
  bool gone_ = false;
  int status_ = 0;
};

int agent::run() {
  const auto cores =
      base::usable_cores(std::max(1U, static_cast<unsigned>(base::mask_cpus().size())), base::cpu_quota());
  link_.send(hello_message{control_version, VERBENA_VERSION, host_name(), host_identity(), cores});
  loop_.run();
  return status_;
}

void agent::on_frame(frame_kind kind, const std::string& payload) {
  const auto take = [&](auto message, auto&& use) {
    if (read_fields(payload, message)) use(std::move(message));
  };
  if (kind == frame_kind::plan) {
    plan_message plan;
    if (!read_fields(payload, plan)) plan = {};  // which makes no sense, and is answered so
    return on_plan(std::move(plan));
  }
  if (!attached_) return;
  switch (kind) {
    case frame_kind::start:
      return node_->start();
    case frame_kind::signal:
      return take(signal_message{}, [this](signal_message&& m) { node_->signal(m.number, m.from_terminal); });
    case frame_kind::resume:
      return node_->resume();
    case frame_kind::kill:
      return node_->kill_all();
    case frame_kind::end:
      return node_->end();
    case frame_kind::announce:
      return take(announce_message{}, [this](announce_message&& m) {
        if (m.rank < job_size_) node_->announce(m.rank, m.state, m.outcome, m.why);
      });
    case frame_kind::announce_ending:
      return node_->announce_ending();
    case frame_kind::close_output:
      return take(close_output_message{}, [this](close_output_message&& m) { outputs_.drop(m.which); });
    case frame_kind::credit:
      return take(credit_message{}, [this](credit_message&& m) { outputs_.grant(m.which, m.bytes); });
    case frame_kind::input:
      return take(input_message{}, [this](input_message&& m) {
        if (!input_ || input_->take(m.bytes)) return;
        link_
            .close();  // more than was granted, or after its end: whoever says that is not the rdmarun that this one knows
        on_closed();
      });
    case frame_kind::fence_done:
      return take(fence_done_message{},
                  [this](fence_done_message&& m) { node_->server().answer_fence(m.ticket, m.good, m.data); });
    case frame_kind::modex_fetch:
      return take(modex_fetch_message{},
                  [this](modex_fetch_message&& m) { node_->server().fetch_modex(m.rank, m.ticket); });
    case frame_kind::modex_done:
      return take(modex_done_message{},
                  [this](modex_done_message&& m) { node_->server().answer_modex(m.ticket, m.good, m.data); });
    default:
      return;  // of a later release
  }
}

void agent::on_plan(plan_message&& plan) {
  if (node_) return;
  ready_message answer;
  answer.wrong = prepare(plan, answer.remarks);
  link_.send(answer);
}

/// The order is that of local_node.hpp.
std::string agent::prepare(plan_message& plan, std::string& remarks) {
  if (!makes_sense(plan)) return "the description of the job makes no sense";
  job_size_ = static_cast<std::uint32_t>(plan.host_of.size());
  try {
    link_.set_link_timeout(static_cast<base::nanoseconds>(settings_of(plan.environment).link_timeout_s) * base::second);
  } catch (const error& refused) {
    return refused.what();
  }
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < plan.host_of.size(); ++r)
    if (plan.host_of[r] == plan.here) ranks.push_back(r);
  if (std::string wrong = raise_descriptor_limit(static_cast<unsigned>(ranks.size())); !wrong.empty())
    return wrong;
  const auto size = static_cast<std::uint32_t>(plan.host_of.size());
  node_ = std::make_unique<local_node>();
  const std::vector<unsigned> mask = base::mask_cpus();
  const unsigned cores =
      base::usable_cores(std::max(1U, static_cast<unsigned>(mask.size())), base::cpu_quota());
  int parents_fd = -1;
  if (plan.input_rank >= 0 && plan.input_is_sent) {
    input_.emplace(loop_, [this](std::uint32_t bytes, bool closed) { link_.send(input_taken_message{bytes, closed}); });
    if (input_->fd() < 0) return fmt::format("cannot make a pipe for the standard input: {}", std::strerror(errno));
    parents_fd = input_->fd();
  }
  if (!node_->fork_keeper(parents_fd)) return "cannot start a process";
  chatter_.emplace();
  node_->prepare_server();
  if (std::string wrong = node_->describe(
          size, ranks, cores, {plan.programs, plan.program_of, {}, plan.environment, plan.directory, plan.input_rank});
      !wrong.empty())
    return wrong;
  const std::string& host = plan.hosts[plan.here];
  const bound_job& bound =
      node_->bind(static_cast<binding>(plan.bind), static_cast<mapping>(plan.map), mask, cores);
  if (ranks.size() > cores && !plan.quiet)
    remarks += fmt::format("rdmarun: {} ranks share {} core{} of {}\n", ranks.size(), cores,
                           cores == 1 ? "" : "s", host);
  if (plan.report_bindings) remarks += describe_bindings(bound, ranks, mask, host);
  if (std::string wrong =
          node_->start_server({plan.job_name, plan.hosts, plan.host_of, plan.here, plan.program_of, {}, {}});
      !wrong.empty())
    return wrong;
  local_node::outputs where;
  where.on_pipes = [this](std::uint32_t rank, base::unique_fd output, base::unique_fd errors) {
    outputs_.add(rank, 0, std::move(output));
    outputs_.add(rank, 1, std::move(errors));
  };
  node_events tell;
  tell.on_report = [this](const keeper_report& report, const std::string& core) {
    link_.send(report_message{report, core});
  };
  tell.on_pmix = [this](const pmix_event& event) { on_pmix(event); };
  tell.on_no_output = [this](int error) { link_.send(no_output_message{error}); };
  tell.on_gone = [this](const std::string& why) { on_gone(why); };
  node_->attach(loop_, std::move(where), std::move(tell));
  attached_ = true;
  return {};
}

void agent::on_pmix(const pmix_event& event) {
  switch (event.what) {
    case pmix_event::kind::fence:
      return link_.send(fence_message{event.ticket, event.ranks, event.text});
    case pmix_event::kind::modex_wanted:
      return link_.send(modex_wanted_message{event.ticket, event.rank});
    case pmix_event::kind::modex_ready:
      return link_.send(modex_ready_message{event.ticket, event.code == 0, event.text});
    case pmix_event::kind::joined:
    case pmix_event::kind::left:
    case pmix_event::kind::aborted:
      return link_.send(event_message{event.what, event.rank, event.code, event.text});
  }
}

void agent::on_gone(const std::string& why) {
  gone_ = true;
  if (link_.closed()) return leave();
  outputs_.finish([this, why] {
    link_.send(gone_message{why});
    // Closing now could cost the other side what it has not read yet: it closes first.
    loop_.after(farewell, [this] { leave(); });
  });
}

/// rdmarun is gone, or the network between: nobody hears of the ranks any more.
void agent::on_closed() {
  outputs_.drop(0);
  outputs_.drop(1);
  if (!attached_ || gone_) return leave();
  status_ = 1;
  node_->announce_ending();
  node_->kill_all();
  node_->end();
}

void agent::leave() {
  loop_.stop();
}

}  // namespace

int run_agent(int socket) {
  base::unique_fd link{socket};
  if (!link) {
    const std::optional<agent_order> order = read_order(read_line(order_patience));
    if (!order) {
      fmt::print(
          stderr,
          "rdmarun: an agent takes its order from the standard input, and there is none: it is started by "
          "rdmarun, not by hand\n");
      return 2;
    }
    if (order->version != control_version) {
      fmt::print(
          stderr,
          "rdmarun on {} is of release {}, which speaks version {} with its agents, not {}: install the same "
          "release on both hosts, or name it with --prefix\n",
          host_name(), VERBENA_VERSION, control_version, order->version);
      return 1;
    }
    std::string why;
    link = call_back(*order, call_patience, why);
    if (!link) {
      fmt::print(stderr,
                 "rdmarun's agent on {} cannot connect back within {} s ({}): is there a firewall between?\n",
                 host_name(), call_patience / base::second, why);
      return 1;
    }
  }
  return agent{std::move(link)}.run();
}

}  // namespace verbena::launcher
