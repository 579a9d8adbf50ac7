#include "launcher/hosts/agents.hpp"

#include "launcher/hosts/addresses.hpp"
#include "launcher/hosts/call_back.hpp"
#include "launcher/process_setup.hpp"
#include "launcher/request.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace verbena::launcher {
namespace {

/// As a POSIX shell, and csh, take it as one word.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

const std::string loopback = "127.0.0.1";

std::string own_path() {
  std::array<char, 4096> path{};
  const long count = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return count > 0 ? std::string(path.data(), static_cast<std::size_t>(count)) : std::string("rdmarun");
}

}  // namespace

agents::agents(event_loop& loop, const options& how, const whereabouts& here)
    : loop_(loop), how_(how), secret_(draw_secret()) {
  for (const host_slots& each : how.hosts) {
    const bool own = is_this_host(each.name, here);
    const auto same = std::find_if(all_.begin(), all_.end(),
                                   [&](const auto& e) { return own ? e->own : e->name == each.name; });
    if (same != all_.end()) {
      (*same)->slots += each.slots;
      continue;
    }
    auto entry = std::make_unique<agent_entry>();
    const bool allocated = here.slurm && here.slurm->has(each.name);
    entry->name = own && !allocated ? here.host : each.name;
    entry->slots = each.slots;
    entry->own = own;
    // Whoever names a way means it, inside an allocation, too.
    entry->by_srun = !own && allocated && how.ssh.empty() && how.agent_command.empty();
    entry->same_host = is_this_host(each.name, {here.host, {}});
    own_host_too_ |= !own && entry->same_host;
    all_.push_back(std::move(entry));
  }
}

agents::~agents() {
  finish();
}

/// The words that the user would know, or could have given.
std::string agents::starts_by(const agent_entry& one) const {
  return one.by_srun ? "srun" : !how_.agent_command.empty() ? how_.agent_command : how_.ssh.empty() ? "ssh" : how_.ssh;
}

std::vector<std::string> agents::command_for(const agent_entry& one) const {
  const std::string program = how_.prefix.empty() ? own_path() : how_.prefix + "/bin/rdmarun";
  if (one.by_srun) {
    std::vector<std::string> words = srun_words(one.name);
    words.insert(words.end(), {program, "--agent"});
    return words;
  }
  const bool by_ssh = how_.agent_command.empty();
  // What the user gives is a piece of shell, so that quotes mean what they mean there; ours follow as arguments.
  std::vector<std::string> words = {"/bin/sh", "-c", starts_by(one) + " \"$@\"", "sh"};
  if (by_ssh) {
    // No question may be asked: there are many hosts and one terminal.
    words.insert(words.end(), {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-T", one.name,
                               quoted(program) + " --agent"});
  } else {
    words.insert(words.end(), {one.name, program, "--agent"});
  }
  return words;
}

std::string agents::gather() {
  gathering_ = true;
  std::vector<std::string> others;
  for (const auto& each : all_)
    if (!each->own) others.push_back(each->name);
  door_ = std::make_unique<door>(
      loop_, secret_,
      [this](std::uint32_t index) { return index < all_.size() && !all_[index]->link && !all_[index]->own; },
      [this](std::uint32_t index, base::unique_fd socket) { know(index, std::move(socket)); });
  base::interface_list allowed;
  base::port_range ports;
  base::interface_list::parse(network_.interface, allowed);
  base::port_range::parse(network_.port_range, ports);
  const std::vector<std::string> addresses = own_addresses(others, allowed);
  for (const std::string& address : addresses) door_->listen(address, ports);
  if (own_host_too_) door_->listen(loopback, ports);  // it may have no other
  if (!others.empty() && addresses.empty() && !own_host_too_)
    return allowed.empty() ? "this host has no address at which other hosts could reach it"
                           : fmt::format("this host has no address on '{}' (--interface) at which other hosts could reach it",
                                         network_.interface);
  if (!others.empty() && door_->places().empty())
    return ports == base::port_range{}
               ? fmt::format("cannot listen on any address of this host: {}", std::strerror(errno))
               : fmt::format("no port of {} (--port-range) is free on this host", network_.port_range);
  start_next();
  if (wrong_.empty() && there_ < all_.size()) loop_.run();
  gathering_ = false;
  door_.reset();  // nothing is waited for any more, so nothing listens
  return wrong_;
}

void agents::start_next() {
  while (wrong_.empty() && next_ < all_.size() && starting_ < at_once_) start_one(next_++);
}

void agents::start_one(std::size_t index) {
  agent_entry& one = *all_[index];
  ++starting_;
  one.begun = base::steady_now();
  loop_.after(patience, [this, of = &one] {
    if (!gathering_ || of->here) return;
    const std::string words = of->start ? of->start->words() : std::string{};
    fail(fmt::format("host {}: rdmarun's agent did not come back within {} s{}{}", of->name,
                     patience / base::second, words.empty() ? "" : ": ", words));
  });
  if (one.own) {
    base::unique_fd socket = start_own_agent(one.pid);
    if (!socket)
      return fail(fmt::format("host {}: cannot start a process: {}", one.name, std::strerror(errno)));
    if (!how_.input_asked) release_standard_input();
    return know(index, std::move(socket));
  }
  start_there(index);
}

void agents::start_there(std::size_t index) {
  agent_entry& one = *all_[index];
  ++one.tries;
  agent_order order{control_version, static_cast<std::uint32_t>(index), secret_, door_->places()};
  if (!one.same_host) std::erase_if(order.places, [](const std::string& p) { return p.starts_with(loopback + " "); });
  one.start = std::make_unique<starter>(loop_, command_for(one), write_order(order),
                                        [this, index](int status) { on_start_ended(index, status); });
  if (!one.start->running())
    fail(fmt::format("host {}: cannot start a process: {}", one.name, std::strerror(errno)));
}

void agents::know(std::size_t index, base::unique_fd socket) {
  agent_entry& one = *all_[index];
  agent_entry* const of = &one;  // entries stay where they are, whatever the list does
  connection::callbacks call;
  call.on_frame = [this, of](frame_kind kind, const std::string& payload) { on_frame(*of, kind, payload); };
  call.on_closed = [this, of](int error) {
    if (of->on_closed) return of->on_closed(error);
    if (gathering_)
      fail(fmt::format("host {}: rdmarun's agent there has gone away again{}{}", of->name,
                       error == 0 ? "" : ": ", error == 0 ? "" : std::strerror(error)));
  };
  one.link = std::make_unique<connection>(loop_, std::move(socket), std::move(call));
  one.link->set_link_timeout(static_cast<base::nanoseconds>(network_.link_timeout_s) * base::second);
}

void agents::on_frame(agent_entry& of, frame_kind kind, const std::string& payload) {
  if (of.on_frame) return of.on_frame(kind, payload);
  if (of.here) return;
  hello_message hello;
  if (kind != frame_kind::hello || !read_fields(payload, hello) || hello.version != control_version)
    return fail(fmt::format("host {}: rdmarun there is of another release{}{}: install the same on all hosts",
                            of.name, hello.release.empty() ? "" : ", ", hello.release));
  of.hello = std::move(hello);
  of.here = true;
  --starting_;
  if (++there_ == all_.size()) return loop_.stop();
  start_next();
}

/// Logins that are turned away because too many are under way, there or on the way there, come through later.
bool agents::try_again(std::size_t index, const std::string& words, int code) {
  const agent_entry& one = *all_[index];
  const bool by_ssh = !one.by_srun && how_.agent_command.empty();
  if (!by_ssh || !turned_away(words, code) || base::steady_now() - one.begun > time_for_tries) return false;
  at_once_ = std::max<std::size_t>(at_once_ / 2, 1);
  const base::nanoseconds pause = std::min(250 * base::millisecond << (one.tries - 1), 4 * base::second);
  // Not all in the same instant. Later, because what has ended is the caller's caller.
  loop_.after(pause + pause / 16 * static_cast<base::nanoseconds>(index % most_starting), [this, index] {
    if (gathering_ && wrong_.empty() && !all_[index]->link) start_there(index);
  });
  return true;
}

void agents::on_start_ended(std::size_t index, int status) {
  const agent_entry& one = *all_[index];
  if (!gathering_ || one.here || one.link) return;
  const std::string words = one.start->words();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (try_again(index, words, code)) return;
  // Such variables stay in shells and scripts when their job is long over.
  const char* const job = one.by_srun ? std::getenv("SLURM_JOB_ID") : nullptr;
  fail(fmt::format(
      "host {}: cannot start rdmarun's agent there: {}{}{}", one.name,
      words.empty() ? fmt::format("{} ended with status {}", starts_by(one), code) : words,
      one.tries == 1 ? "" : fmt::format(", tried {} times", one.tries),
      job == nullptr
          ? ""
          : fmt::format("\nrdmarun: it was asked of Slurm because SLURM_JOB_ID is {}: if that job is "
                        "over, unset it, or start agents by ssh (--ssh ssh)",
                        job)));
}

void agents::fail(std::string sentence) {
  if (wrong_.empty()) wrong_ = std::move(sentence);
  loop_.stop();
}

void agents::merge() {
  for (std::size_t i = 0; i < all_.size(); ++i)
    for (std::size_t j = all_.size(); j-- > i + 1;) {
      if (all_[i]->hello.identity != all_[j]->hello.identity) continue;
      if (all_[j]->own) std::swap(all_[i], all_[j]);  // the one with the standard input stays
      all_[i]->slots += all_[j]->slots;
      dismiss(j);
    }
}

void agents::dismiss(std::size_t index) {
  agent_entry& one = *all_[index];
  one.on_closed = [](int) {};
  one.link->close();
  dismissed_.push_back(std::move(all_[index]));
  all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(index));
}

void agents::finish() {
  const base::nanoseconds limit = base::steady_now() + 2 * base::second;
  for (auto* list : {&all_, &dismissed_}) {
    for (const auto& each : *list)
      if (each->link) each->link->close();
    for (const auto& each : *list) {
      const base::nanoseconds left = each->lost ? 100 * base::millisecond : limit - base::steady_now();
      if (each->start) each->start->finish(std::max<base::nanoseconds>(0, left));
      each->start.reset();
      if (each->pid <= 0) continue;
      while (::waitpid(each->pid, nullptr, WNOHANG) == 0) {
        if (base::steady_now() > limit) ::kill(each->pid, SIGKILL);
        ::usleep(200);
      }
      each->pid = -1;
    }
  }
}

}  // namespace verbena::launcher
