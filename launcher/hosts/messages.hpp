// The messages between rdmarun and its agents, each a frame_kind of the same name (frame.hpp).
#pragma once

#include "base/job_page.hpp"
#include "launcher/hosts/frame.hpp"
#include "launcher/job.hpp"
#include "launcher/keeper.hpp"
#include "launcher/pmix_server.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::launcher {

/// The first word of an agent that has proven itself.
struct hello_message {
  static constexpr frame_kind kind = frame_kind::hello;
  std::uint32_t version = control_version;
  std::string release;   ///< of rdmarun there
  std::string host;      ///< what that host calls itself
  std::string identity;  ///< the same for two agents if and only if they are on one host
  std::uint32_t cores = 1;
  template <class A>
  void fields(A& a) {
    a(version, release, host, identity, cores);
  }
};

/// All that an agent needs to know of the job.
struct plan_message {
  static constexpr frame_kind kind = frame_kind::plan;
  std::string job_name;
  std::vector<std::string> hosts;
  std::vector<std::uint32_t> host_of;  ///< of each rank
  std::uint32_t here = 0;              ///< the agent's index in `hosts`
  std::vector<std::uint32_t> program_of;
  std::vector<std::vector<std::string>> programs;
  std::vector<std::string> environment;
  std::string directory;
  std::int32_t input_rank = -1;  ///< the rank there that has a standard input; -1: none
  bool input_is_sent = false;    ///< it comes in messages; else the rank inherits the agent's own
  std::uint8_t bind = 0;
  std::uint8_t map = 0;
  bool report_bindings = false;
  bool quiet = false;
  template <class A>
  void fields(A& a) {
    a(job_name, hosts, host_of, here, program_of, programs, environment, directory, input_rank, input_is_sent,
      bind, map, report_bindings, quiet);
  }
};

/// The ranks can be started, or `wrong` says why not.
struct ready_message {
  static constexpr frame_kind kind = frame_kind::ready;
  std::string wrong;
  std::string remarks;  ///< whole lines for the user
  template <class A>
  void fields(A& a) {
    a(wrong, remarks);
  }
};

struct output_message {
  static constexpr frame_kind kind = frame_kind::output;
  std::uint32_t rank = 0;
  std::uint8_t which = 0;  ///< 0: standard output, 1: error
  std::string bytes;
  template <class A>
  void fields(A& a) {
    a(rank, which, bytes);
  }
};

struct report_message {
  static constexpr frame_kind kind = frame_kind::report;
  keeper_report report;
  std::string core;
  template <class A>
  void fields(A& a) {
    a(report.what, report.step, report.rank, report.pid, report.value, core);
  }
};

/// A rank has joined, left or aborted.
struct event_message {
  static constexpr frame_kind kind = frame_kind::event;
  pmix_event::kind what = pmix_event::kind::joined;
  std::uint32_t rank = 0;
  std::int32_t code = 0;
  std::string text;
  template <class A>
  void fields(A& a) {
    a(what, rank, code, text);
  }
};

struct no_output_message {
  static constexpr frame_kind kind = frame_kind::no_output;
  std::int32_t error = 0;
  template <class A>
  void fields(A& a) {
    a(error);
  }
};

struct gone_message {
  static constexpr frame_kind kind = frame_kind::gone;
  std::string why;
  template <class A>
  void fields(A& a) {
    a(why);
  }
};

struct signal_message {
  static constexpr frame_kind kind = frame_kind::signal;
  std::int32_t number = 0;
  bool from_terminal = false;
  template <class A>
  void fields(A& a) {
    a(number, from_terminal);
  }
};

struct announce_message {
  static constexpr frame_kind kind = frame_kind::announce;
  std::uint32_t rank = 0;
  base::rank_state state = base::rank_state::starting;
  std::uint32_t outcome = 0;
  failure why = failure::none;
  template <class A>
  void fields(A& a) {
    a(rank, state, outcome, why);
  }
};

struct close_output_message {
  static constexpr frame_kind kind = frame_kind::close_output;
  std::uint8_t which = 0;
  template <class A>
  void fields(A& a) {
    a(which);
  }
};

/// So many more bytes of an output may be sent.
struct credit_message {
  static constexpr frame_kind kind = frame_kind::credit;
  std::uint8_t which = 0;
  std::uint32_t bytes = 0;
  template <class A>
  void fields(A& a) {
    a(which, bytes);
  }
};

/// For the rank with the standard input; no bytes: that was all.
struct input_message {
  static constexpr frame_kind kind = frame_kind::input;
  std::string bytes;
  template <class A>
  void fields(A& a) {
    a(bytes);
  }
};

/// So many bytes of it were given on; or nobody reads it any more.
struct input_taken_message {
  static constexpr frame_kind kind = frame_kind::input_taken;
  std::uint32_t bytes = 0;
  bool closed = false;
  template <class A>
  void fields(A& a) {
    a(bytes, closed);
  }
};

/// The ranks of this host have met; `ticket` is the agent's.
struct fence_message {
  static constexpr frame_kind kind = frame_kind::fence;
  std::uint64_t ticket = 0;
  std::vector<std::uint32_t> ranks;  ///< that take part; none: all
  std::string data;
  template <class A>
  void fields(A& a) {
    a(ticket, ranks, data);
  }
};

/// An answer to a fence or to a wish for a rank's values, with the ticket of the question.
template <frame_kind Kind>
struct answer_message {
  static constexpr frame_kind kind = Kind;
  std::uint64_t ticket = 0;
  bool good = false;
  std::string data;
  template <class A>
  void fields(A& a) {
    a(ticket, good, data);
  }
};
using fence_done_message = answer_message<frame_kind::fence_done>;
using modex_ready_message = answer_message<frame_kind::modex_ready>;  ///< to rdmarun, with its ticket
using modex_done_message =
    answer_message<frame_kind::modex_done>;  ///< to the agent that asked, with its ticket

/// Somebody wants what a rank of another host has published.
template <frame_kind Kind>
struct modex_message {
  static constexpr frame_kind kind = Kind;
  std::uint64_t ticket = 0;
  std::uint32_t rank = 0;
  template <class A>
  void fields(A& a) {
    a(ticket, rank);
  }
};
using modex_wanted_message = modex_message<frame_kind::modex_wanted>;  ///< agent to rdmarun
using modex_fetch_message = modex_message<frame_kind::modex_fetch>;    ///< rdmarun to the agent of that rank

}  // namespace verbena::launcher
