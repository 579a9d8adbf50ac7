// The part of a job on a host that an agent looks after, seen from rdmarun: passes orders and news on over the connection, and
// what comes back to the head and into the outputs. It must not know how the agent was started.
#pragma once

#include "launcher/hosts/connection.hpp"
#include "launcher/hosts/messages.hpp"
#include "launcher/node.hpp"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace verbena::launcher {

class remote_node final : public node {
 public:
  struct callbacks {
    node_events head;
    /// Bytes of a rank's standard output (0) or error (1). False: that output is full; `give_credit` when it is not.
    std::function<bool(std::uint32_t rank, unsigned which, std::string_view bytes)> on_output;
    /// Questions of the PMIx server there.
    std::function<void(fence_message&&)> on_fence;
    std::function<void(const modex_wanted_message&)> on_modex_wanted;
    std::function<void(const modex_ready_message&)> on_modex_ready;
  };

  /// `name`: of the host, for sentences; `ranks`: those there, ascending. Takes over a connection that has said hello and been
  /// sent a plan.
  remote_node(std::string name, std::vector<std::uint32_t> ranks, connection& to)
      : name_(std::move(name)), ranks_(std::move(ranks)), to_(to) {}
  void attach(callbacks call) { call_ = std::move(call); }
  /// Of the standard input that is sent there. `action` returns false for what makes no sense.
  void on_input_taken(std::function<bool(std::uint32_t bytes, bool closed)> action) { on_input_taken_ = std::move(action); }

  // From the connection.
  void on_frame(frame_kind kind, const std::string& payload);
  void on_closed(int error);

  void start() override { to_.send(frame_kind::start); }
  void signal(int number, bool from_terminal) override {
    to_.send(signal_message{number, from_terminal && shares_terminal_});
  }
  void resume() override { to_.send(frame_kind::resume); }
  void kill_all() override { to_.send(frame_kind::kill); }
  base::nanoseconds unheard() const override { return to_.unheard(); }
  base::nanoseconds usual_silence() const override { return to_.usual_silence(); }
  void end() override { to_.send(frame_kind::end); }
  void close_output(unsigned which) override {
    to_.send(close_output_message{static_cast<std::uint8_t>(which)});
  }
  void announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome, failure why) override {
    to_.send(announce_message{rank, state, outcome, why});
  }
  void announce_ending() override { to_.send(frame_kind::announce_ending); }

  /// Lets the agent send as much of that output again as has been taken.
  void give_credit(unsigned which);
  void share_terminal() { shares_terminal_ = true; }

 private:
  bool is_here(std::uint32_t rank) const;
  void be_gone(const std::string& why);

  std::string name_;
  std::vector<std::uint32_t> ranks_;
  connection& to_;
  callbacks call_;
  std::function<bool(std::uint32_t, bool)> on_input_taken_;
  std::array<std::uint32_t, 2> owed_{};  ///< bytes of each output taken and not granted again
  bool shares_terminal_ = false;
  bool gone_ = false;
};

}  // namespace verbena::launcher
