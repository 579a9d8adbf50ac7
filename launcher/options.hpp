// rdmarun's command line: one table of options, read by the parser, by --help and by the documentation, and
// the values they gave. Pure: nothing is looked up on the machine, nothing printed. An option nobody knows is
// an error and never taken for the program; everything after the program's name is the program's.
#pragma once

#include "launcher/hosts/mapping.hpp"
#include "launcher/placement.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

struct option_row {
  std::string_view names;  ///< as typed, the common one first: "-n,-np,--n"
  std::string_view value;  ///< what follows, in words; empty: a switch
  std::string_view text;
};

std::span<const option_row> option_rows();

enum class action { run, help, help_status, manual, version, settings, agent };

/// One program of the job; its ranks follow those of the program before it.
struct program_part {
  std::optional<unsigned> count;  ///< -n; without it, one for a further program
  std::vector<std::string> arguments;
};

/// A place to run, as `-H NAME:SLOTS` names it.
struct host_slots {
  std::string name;
  unsigned slots = 1;
};

struct options {
  action what = action::run;
  std::vector<program_part> programs;  ///< one, or several separated by ':'
  std::vector<host_slots> hosts;
  std::string hostfile;  ///< where more of them stand
  mapping map = mapping::slot;
  std::string ssh;            ///< what reaches another host: this, options, HOST, a command; empty: nothing was said
  std::string agent_command;  ///< instead of ssh: this, HOST, and the agent's words
  std::string prefix;         ///< where Verbena is installed on the other hosts; empty: as here
  int agent_socket = -1;      ///< of an agent on rdmarun's own host
  std::string directory;
  std::vector<std::string> variables;  ///< requests of -x, in order
  std::string fabric;
  std::string interface;   ///< network interfaces and networks to use; empty: all, or what the variable says
  std::string port_range;  ///< where to listen, likewise
  std::string link_timeout;
  std::string device;
  std::string output_directory;
  int input_rank = 0;  ///< -1: nobody reads the standard input
  bool input_asked = false;  ///< --stdin was given: a rank of another host gets it as well
  bool no_oversubscribe = false;
  binding bind = binding::automatic;
  bool report_bindings = false;
  std::optional<double> timeout_s;
  double grace_s = 5;
  double abort_grace_s = 0.5;
  bool explain = false;
  bool tag = false;
  bool quiet = false;
  bool verbose = false;
};

/// Ranks of the whole job: what -n says; else the slots of -H; else `cores` for a single program.
unsigned job_size(const options& how, unsigned cores);

/// The index of each rank's program.
std::vector<std::uint32_t> programs_of_ranks(const options& how, unsigned cores);

/// Adds the hosts that a host file names, one a line: "NAME", "NAME:SLOTS" or "NAME slots=SLOTS", as Open MPI and MPICH take
/// them; '#' begins a comment. Returns the sentence to print if it is wrong.
std::string parse_hostfile(std::string_view text, std::string_view path, std::vector<host_slots>& into);

/// Parses the arguments after the launcher's own name. On failure returns the sentence to print.
std::string parse_options(const std::vector<std::string>& arguments, options& into);

}  // namespace verbena::launcher
