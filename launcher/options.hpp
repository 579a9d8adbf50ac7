// rdmarun's command line: one table of options, read by the parser, by --help and by the documentation, and
// the values they gave. Pure: nothing is looked up on the machine, nothing printed. An option nobody knows is
// an error and never taken for the program; everything after the program's name is the program's.
#pragma once

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

enum class action { run, help, help_status, version, settings };

struct options {
  action what = action::run;
  std::optional<unsigned> count;  ///< -n; without it: the cores of the caller's mask
  std::vector<std::string> program;
  std::string directory;
  std::vector<std::string> variables;  ///< requests of -x, in order
  std::string fabric;
  std::optional<double> timeout_s;
  double grace_s = 5;
  double abort_grace_s = 0.5;
  bool explain = false;
  bool tag = false;
  bool quiet = false;
  bool verbose = false;
};

/// Parses the arguments after the launcher's own name. On failure returns the sentence to print.
std::string parse_options(const std::vector<std::string>& arguments, options& into);

}  // namespace verbena::launcher
