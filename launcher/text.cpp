#include "launcher/text.hpp"

#include "base/settings.hpp"
#include "launcher/options.hpp"

#include <fmt/format.h>

#include <array>

namespace verbena::launcher {
namespace {

constexpr std::array<status_row, 9> statuses = {{
    {"0", "every rank ended with 0, and those that joined the job have left it"},
    {"1-255", "the first rank to fail, in time, exited with this status, or aborted the job with it"},
    {"1",
     "a rank exited with 0 but without leaving the job, or without joining the job that others have joined"},
    {"2", "the command line or a setting is wrong; nothing was started"},
    {"124", "--timeout passed"},
    {"125", "rdmarun itself failed: a host not reached, no PMIx server, not enough descriptors, its output cannot be written"},
    {"126", "the program was found but cannot be run, or the directory of --wdir not entered"},
    {"127", "there is no such program"},
    {"128+S",
     "signal S ended the first rank to fail, or rdmarun was told to end by it (143: TERM, 130: INT, 129: "
     "HUP)"},
}};

/// Appends "  name   text" with the text broken into lines of a common width.
void append_row(std::string& out, std::string_view name, std::string_view text, std::size_t column) {
  constexpr std::size_t width = 100;
  std::string line = fmt::format("  {}", name);
  if (line.size() + 2 > column) {
    out += line + '\n';
    line.clear();
  }
  line.resize(column, ' ');
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (used != 0 && line.size() + 1 + word.size() > width) {
      out += line + '\n';
      line.assign(column, ' ');
      used = 0;
    }
    if (used != 0) line += ' ';
    line += word;
    ++used;
  }
  out += line + '\n';
}

}  // namespace

std::span<const status_row> status_rows() {
  return statuses;
}

std::string help_text() {
  std::string out =
      "Usage: rdmarun [options] program [arguments]\n"
      "Starts the ranks of a job, on this host, on others, or on those of a Slurm allocation, and waits for them.\n\nOptions:\n";
  for (const option_row& row : option_rows()) {
    std::string names;
    for (const char c : row.names) names += c == ',' ? std::string{", "} : std::string{c};
    append_row(out, row.value.empty() ? names : fmt::format("{} {}", names, row.value), row.text, 28);
  }
  out +=
      "\nEach rank finds VERBENA_RANK, VERBENA_SIZE, VERBENA_LOCAL_RANK and VERBENA_LOCAL_SIZE in its "
      "environment.\n"
      "More: rdmarun --help status, rdmarun --settings\n";
  return out;
}

std::string status_text() {
  std::string out = "The exit status of rdmarun:\n";
  for (const status_row& row : statuses) append_row(out, row.status, row.meaning, 12);
  return out;
}

std::string manual_text() {
  const auto escaped = [](std::string_view text) {
    std::string out;
    for (const char c : text)
      out += c == '-' ? std::string{"\\-"} : c == '\\' ? std::string{"\\e"} : std::string{c};
    return out;
  };
  std::string out =
      ".TH RDMARUN 1 \"\" \"Verbena " VERBENA_VERSION
      "\"\n.SH NAME\nrdmarun \\- start the ranks of a Verbena job\n"
      ".SH SYNOPSIS\n.B rdmarun\n[\\fIoptions\\fR] \\fIprogram\\fR [\\fIarguments\\fR]\n"
      "[\\fB:\\fR [\\fB\\-n\\fR \\fIN\\fR] \\fIprogram\\fR [\\fIarguments\\fR]]...\n.SH DESCRIPTION\n"
      "Starts ranks on this host, on others, or on those of a Slurm allocation, serves them PMIx, passes their output on in whole lines and ends with the "
      "status of\n"
      "the first rank that fails. Whatever ends rdmarun, no process, file or segment is left behind.\n.SH "
      "OPTIONS\n";
  for (const option_row& row : option_rows())
    out += fmt::format(".TP\n\\fB{}\\fR {}\n{}\n", escaped(row.names), escaped(row.value), escaped(row.text));
  out += ".SH EXIT STATUS\n";
  for (const status_row& row : statuses)
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(row.status), escaped(row.meaning));
  out +=
      ".SH ENVIRONMENT\nEach rank finds VERBENA_RANK, VERBENA_SIZE, VERBENA_LOCAL_RANK and "
      "VERBENA_LOCAL_SIZE. The\n"
      "settings of the library are printed by\n.BR \"rdmarun \\-\\-settings\" .\n";
  return out;
}

std::string settings_text() {
  const base::settings defaults;
  std::string out = "The settings of the library: environment variables, passed on to the ranks.\n";
  for (const base::setting_row& row : base::setting_rows()) {
    const std::string value = row.show(defaults);
    append_row(out, row.variable,
               fmt::format("{} ({}; default: {})", row.text, row.type, value.empty() ? "empty" : value), 30);
  }
  return out;
}

}  // namespace verbena::launcher
