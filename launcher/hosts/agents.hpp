// The agents of a job while they gather: one per host is started and comes back. Runs an event loop until all are there, or
// one cannot be; then says which and why.
#pragma once

#include "base/settings.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/hosts/connection.hpp"
#include "launcher/hosts/door.hpp"
#include "launcher/hosts/messages.hpp"
#include "launcher/hosts/starter.hpp"
#include "launcher/options.hpp"
#include "launcher/request.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace verbena::launcher {

struct agent_entry {
  std::string name;  ///< as the user gave it
  unsigned slots = 1;
  bool same_host = false;  ///< goes by a name of this host, whoever starts its agent
  bool lost = false;       ///< its connection broke: what started it may have nobody to talk to
  bool own = false;      ///< on this host, a child of ours with a socket pair
  bool by_srun = false;  ///< of the allocation, and so started by its means
  unsigned tries = 0;      ///< starts of its agent
  base::nanoseconds begun = 0;
  std::unique_ptr<starter> start;
  pid_t pid = -1;  ///< of our own
  std::unique_ptr<connection> link;
  std::function<void(frame_kind, const std::string&)> on_frame;  ///< once it has said hello
  std::function<void(int error)> on_closed;
  hello_message hello;
  bool here = false;  ///< it has said hello
};

class agents {
 public:
  /// So many are started at the same time: what they all are started through has limits of its own (sshd's MaxStartups is 10).
  static constexpr std::size_t most_starting = 8;
  /// Fewer when a login was turned away; and for so long each is tried again, after pauses that double.
  static constexpr base::nanoseconds time_for_tries = 12 * base::second;
  /// For one, from its start on; and for all to get ready.
  static constexpr base::nanoseconds patience = 30 * base::second;

  agents(event_loop& loop, const options& how, const whereabouts& here);
  ~agents();
  agents(const agents&) = delete;
  agents& operator=(const agents&) = delete;

  /// For `interface`, `port_range` and `link_timeout_s`; before `gather`.
  void obey(const base::settings& network) { network_ = network; }
  /// Returns when all are there. Empty, or a sentence.
  std::string gather();
  /// Several names of one host are one host: the first stays, and has the slots of all.
  void merge();
  std::vector<std::unique_ptr<agent_entry>>& all() { return all_; }
  /// Lets an agent go that is not needed.
  void dismiss(std::size_t index);
  /// Waits a moment for those that started them.
  void finish();

 private:
  void start_next();
  void start_one(std::size_t index);
  void start_there(std::size_t index);
  bool try_again(std::size_t index, const std::string& words, int code);
  void know(std::size_t index, base::unique_fd socket);
  void on_frame(agent_entry& of, frame_kind kind, const std::string& payload);
  void on_start_ended(std::size_t index, int status);
  void fail(std::string sentence);
  std::vector<std::string> command_for(const agent_entry& one) const;
  std::string starts_by(const agent_entry& one) const;

  event_loop& loop_;
  const options& how_;
  base::settings network_;
  job_secret secret_;
  std::vector<std::unique_ptr<agent_entry>> all_;
  std::vector<std::unique_ptr<agent_entry>> dismissed_;
  std::unique_ptr<door> door_;
  std::size_t next_ = 0;
  std::size_t starting_ = 0;
  std::size_t at_once_ = most_starting;
  std::size_t there_ = 0;
  bool own_host_too_ = false;  ///< an agent that is no child of ours comes back from this very host
  bool gathering_ = false;
  std::string wrong_;
};

}  // namespace verbena::launcher
