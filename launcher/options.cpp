#include "launcher/options.hpp"

#include "base/network.hpp"
#include "base/number.hpp"
#include "base/settings.hpp"
#include "launcher/words.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>

namespace verbena::launcher {
namespace {

constexpr std::array<option_row, 31> rows = {{
    {"-n,-np,--np", "N",
     "number of ranks (default: the slots of all hosts, or else the cores this command may use)"},
    {"-H,--host", "NAMES",
     "where to run, NAME or NAME:SLOTS, comma separated (default: this host, or Slurm's allocation)"},
    {"-hostfile,--hostfile", "FILE",
     "the same from a file, one host a line: NAME, NAME:SLOTS or NAME slots=SLOTS"},
    {"--map", "POLICY",
     "slot, the default: fill a host, then the next; node: one rank to each host in turn; core, numa: as "
     "slot, and on a host to its cores or memory domains in turn"},
    {"--ssh", "COMMAND",
     "what reaches other hosts (default ssh, or srun inside Slurm's allocation): COMMAND [OPTIONS] HOST "
     "AGENT"},
    {"--agent-command", "COMMAND",
     "what starts rdmarun's agent on a host, instead of ssh: COMMAND HOST AGENT..."},
    {"--prefix", "DIR", "where Verbena is installed on the other hosts (default: as on this one)"},
    {"-bind-to,--bind-to,--bind", "POLICY",
     "bind each rank to a core, a numa domain or a socket; none; or auto, the default: each rank to its "
     "share of the "
     "cores if there are enough that no other job holds"},
    {"-report-bindings,--report-bindings", "", "say on which processors each rank runs, and why"},
    {"--no-oversubscribe", "", "refuse more ranks than cores (otherwise they run, with one line)"},
    {"--wdir", "DIR", "directory in which the ranks start"},
    {"-x,--env", "VAR=VALUE",
     "set a variable for the ranks; VAR- removes it; all others are passed on as they are"},
    {"--fabric", "NAMES", "fabrics the ranks may use, comma separated: self, shm, tcp, verbs"},
    {"--device", "NAME", "RDMA device the ranks use for verbs, NAME or NAME:PORT"},
    {"--interface", "NAMES",
     "network interfaces (eth0) and networks (10.1.0.0/16) that TCP uses between hosts, comma separated "
     "(default: all)"},
    {"--port-range", "LOW:HIGH", "ports on which rdmarun and the ranks may listen (default: any)"},
    {"--link-timeout", "SECONDS",
     "a host or a rank that the network does not reach for longer is lost (default 10)"},
    {"--explain", "", "let the ranks print which fabric and protocol they use, and why"},
    {"--stdin", "RANK",
     "the rank that reads the standard input, or none (default: 0, if it is on this host); the others read "
     "nothing"},
    {"--output", "DIR",
     "write each rank's output to DIR/rank.N.out and DIR/rank.N.err instead of passing it on"},
    {"--tag", "", "begin each line of output with [rank]"},
    {"--timeout", "SECONDS", "end the job when it has run so long, with status 124"},
    {"--grace", "SECONDS", "time between the signal that ends the job (or the timeout) and KILL (default 5)"},
    {"--abort-grace", "SECONDS", "the same for the other ranks when one has failed (default 0.5)"},
    {"-q,--quiet", "", "no message of rdmarun's own; the status tells"},
    {"-v,--verbose", "", "say what is done"},
    {"--settings", "", "print the settings of the library and exit"},
    {"--version", "", "print the version and exit"},
    {"-h,--help", "", "print this text and exit; '--help status' explains the exit status"},
    {"--oversubscribe", "", "accepted: more ranks than cores are always allowed"},
    {"--allow-run-as-root", "", "accepted: root needs no permission"},
}};

/// The row that knows `name`, or nullptr.
const option_row* find_row(std::string_view name) {
  for (const option_row& row : rows) {
    std::string_view names = row.names;
    while (!names.empty()) {
      const std::size_t comma = std::min(names.find(','), names.size());
      if (names.substr(0, comma) == name) return &row;
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
  }
  return nullptr;
}

std::string_view long_name(const option_row& row) {
  const std::size_t comma = row.names.rfind(',');
  return row.names.substr(comma == std::string_view::npos ? 0 : comma + 1);
}

/// The known option nearest to a mistyped one, for the message; empty if none is near.
std::string_view nearest(std::string_view typed) {
  std::string_view best;
  std::size_t most = 3;  // letters in common at the start
  for (const option_row& row : rows) {
    const std::string_view name = long_name(row);
    const auto end = std::mismatch(name.begin(), name.end(), typed.begin(), typed.end()).first;
    const auto same = static_cast<std::size_t>(end - name.begin());
    if (same > most) {
      most = same;
      best = name;
    }
  }
  return best;
}

/// Splits launcher options from the program, so that CLI11 never sees the program's arguments, and writes
/// each option as --name=value, so that "-np" is known and a value may begin with a dash.
std::string split(const std::vector<std::string>& arguments, std::vector<std::string>& own,
                  std::vector<std::string>& program) {
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const std::size_t equals = word.find('=');
    const option_row* row = find_row(word.substr(0, equals));
    const option_row* short_row = row == nullptr && word[1] != '-' ? find_row(word.substr(0, 2)) : nullptr;
    const bool attached = short_row != nullptr && !short_row->value.empty();  // -n4
    if (attached) row = short_row;
    if (row == nullptr || (!attached && equals != std::string::npos && row->value.empty())) {
      const std::string_view near = nearest(word);
      return fmt::format("unknown option '{}'{}", word,
                         near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
    }
    const std::string name{long_name(*row)};
    if (row->value.empty()) {
      own.push_back(name);
    } else if (attached) {
      own.push_back(name + "=" + word.substr(2));
    } else if (equals != std::string::npos) {
      own.push_back(name + word.substr(equals));
    } else {
      if (++i == arguments.size()) return fmt::format("option '{}' needs a value ({})", word, row->value);
      own.push_back(name + "=" + arguments[i]);
    }
  }
  program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return {};
}

std::string check_seconds(const char* name, double value) {
  if (std::isfinite(value) && value >= 0 && value <= 1e9) return {};
  return fmt::format("option '{}' takes seconds from 0 to 1e9, not {}", name, value);
}

std::string check_fabrics(const std::string& names) {
  const std::string_view wrong = base::unknown_fabric(names);
  return wrong.empty() ? std::string{}
                       : fmt::format("there is no fabric '{}'; have: self, shm, tcp, verbs", wrong);
}

/// Of what is said to the ranks, too.
std::string check_network(const options& how) {
  base::interface_list list;
  base::port_range range;
  std::uint32_t seconds = 0;
  if (!base::interface_list::parse(how.interface, list))
    return fmt::format("option '--interface' takes a list such as eth0,10.1.0.0/16, not '{}'", how.interface);
  if (!how.port_range.empty() && !base::port_range::parse(how.port_range, range))
    return fmt::format("option '--port-range' takes LOW:HIGH, not '{}'", how.port_range);
  if (!how.link_timeout.empty() &&
      (!base::parse_number(how.link_timeout, seconds) || seconds == 0 || seconds > 86'400))
    return fmt::format("option '--link-timeout' takes whole seconds from 1 to 86400, not '{}'", how.link_timeout);
  return {};
}

std::string parse_hosts(std::string_view text, std::vector<host_slots>& into) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    // An IPv6 address has colons of its own: bare it is a name, in brackets slots may follow.
    const bool bracketed = part.starts_with('[') && part.find(']') != std::string_view::npos;
    const bool address = !bracketed && part.find(':') != part.rfind(':');
    const std::size_t end = bracketed ? part.find(']') : address ? part.size() : std::min(part.find(':'), part.size());
    host_slots host{std::string{part.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0))}, 1};
    const std::string_view rest = part.substr(std::min(end + (bracketed ? 1 : 0), part.size()));
    if (host.name.empty() ||
        (!rest.empty() &&
         (rest[0] != ':' || !base::parse_number(rest.substr(1), host.slots) || host.slots == 0)))
      return fmt::format("option '-H' takes NAME or NAME:SLOTS, not '{}'", part);
    into.push_back(std::move(host));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return {};
}

/// "NAME", "NAME:SLOTS" or, as `slots`, what stands behind "slots=".
std::string parse_host_line(std::string_view line, std::vector<host_slots>& into) {
  const std::vector<std::string> words = split_words(line);
  if (words.empty()) return {};
  std::vector<host_slots> one;
  if (!parse_hosts(words[0], one).empty() || one.size() != 1)
    return fmt::format("'{}' is no host: NAME or NAME:SLOTS", words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool slots = words[i].starts_with("slots=");
    if (!slots && !words[i].starts_with("max_slots=") && !words[i].starts_with("max-slots="))
      return fmt::format("'{}' is not known here", words[i]);
    if (slots &&
        (!base::parse_number(std::string_view(words[i]).substr(6), one[0].slots) || one[0].slots == 0))
      return fmt::format("'{}' is no number of slots", words[i]);
  }
  into.push_back(one[0]);
  return {};
}

/// "prog1 args : -n 2 prog2 args : …"; the first program's own options have been taken already.
std::string parse_programs(bool counted, long long count, std::vector<std::string> words,
                           std::vector<program_part>& into) {
  for (bool first = true;; first = false) {
    if (!first) {
      std::vector<std::string> own, rest;
      if (std::string wrong = split(words, own, rest); !wrong.empty()) return wrong;
      words = std::move(rest);
      counted = false;
      for (const std::string& option : own) {
        long long value = 0;
        if (!option.starts_with("--np=") || !base::parse_number(std::string_view{option}.substr(5), value))
          return fmt::format("after ':' only '-n N' may stand before the program, not '{}'", option);
        count = value;
        counted = true;
      }
    }
    if (counted && (count < 1 || count > 1'000'000))
      return fmt::format("option '-n' takes a number of ranks from 1 on, not {}", count);
    const auto colon = std::find(words.begin(), words.end(), ":");
    program_part part;
    part.arguments.assign(words.begin(), colon);
    if (part.arguments.empty())
      return first && colon == words.end() ? "no program given" : "no program beside ':'";
    if (counted) part.count = static_cast<unsigned>(count);
    into.push_back(std::move(part));
    if (colon == words.end()) return {};
    words.erase(words.begin(), colon + 1);
  }
}

}  // namespace

std::span<const option_row> option_rows() {
  return rows;
}

unsigned job_size(const options& how, unsigned cores) {
  return static_cast<unsigned>(programs_of_ranks(how, cores).size());
}

std::vector<std::uint32_t> programs_of_ranks(const options& how, unsigned cores) {
  unsigned slots = 0;
  for (const host_slots& host : how.hosts) slots += host.slots;
  const unsigned alone = slots != 0 ? slots : cores;
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < how.programs.size(); ++i)
    result.insert(result.end(), how.programs[i].count.value_or(how.programs.size() == 1 ? alone : 1), i);
  return result;
}

std::string parse_hostfile(std::string_view text, std::string_view path, std::vector<host_slots>& into) {
  const std::size_t before = into.size();
  for (unsigned number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (std::string wrong = parse_host_line(line.substr(0, line.find('#')), into); !wrong.empty())
      return fmt::format("{}:{}: {}", path, number, wrong);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return into.size() > before ? std::string{} : fmt::format("the host file '{}' names no host", path);
}

std::string parse_options(const std::vector<std::string>& arguments, options& into) {
  // Not for people, and so in no table: rdmarun says it to itself, on other hosts and on its own.
  constexpr std::string_view agent = "--agent";
  if (arguments.size() == 1 && arguments[0].starts_with(agent)) {
    const std::string_view rest = std::string_view{arguments[0]}.substr(agent.size());
    if (rest.empty() || (rest[0] == '=' && base::parse_number(rest.substr(1), into.agent_socket))) {
      into.what = action::agent;
      return {};
    }
  }
  std::vector<std::string> own, rest;
  if (std::string wrong = split(arguments, own, rest); !wrong.empty()) return wrong;

  CLI::App app;
  app.set_help_flag();
  long long count = 0;
  double timeout = 0;
  std::string input = "0", hosts, bind = "auto", map = "slot";
  bool help = false, version = false, settings = false, accepted = false;
  auto* n = app.add_option("-n,--np", count);
  app.add_option("--wdir", into.directory);
  app.add_option("-x,--env", into.variables)->expected(1)->take_all();
  app.add_option("--fabric", into.fabric);
  app.add_option("--device", into.device);
  app.add_option("--interface", into.interface);
  app.add_option("--port-range", into.port_range);
  app.add_option("--link-timeout", into.link_timeout);
  app.add_flag("--explain", into.explain);
  app.add_flag("--tag", into.tag);
  auto* limit = app.add_option("--timeout", timeout);
  app.add_option("--grace", into.grace_s);
  app.add_option("--abort-grace", into.abort_grace_s);
  app.add_flag("-q,--quiet", into.quiet);
  app.add_flag("-v,--verbose", into.verbose);
  app.add_flag("--settings", settings);
  app.add_flag("--version", version);
  app.add_flag("-h,--help", help);
  app.add_flag("--oversubscribe", accepted);
  app.add_flag("--allow-run-as-root", accepted);
  auto* reader = app.add_option("--stdin", input);
  app.add_option("--output", into.output_directory);
  app.add_option("-H,--host", hosts);
  app.add_option("--hostfile", into.hostfile);
  app.add_option("--map", map);
  app.add_option("--ssh", into.ssh);
  app.add_option("--agent-command", into.agent_command);
  app.add_option("--prefix", into.prefix);
  app.add_flag("--no-oversubscribe", into.no_oversubscribe);
  app.add_option("--bind", bind);
  app.add_flag("--report-bindings", into.report_bindings);
  try {
    std::reverse(own.begin(), own.end());  // CLI11 takes the last element first
    app.parse(std::move(own));
  } catch (const CLI::ParseError& wrong) {
    return wrong.what();
  }

  if (help) {
    const std::string about = rest.empty() ? "" : rest[0];
    into.what = about == "status" ? action::help_status : about == "man" ? action::manual : action::help;
    return {};
  }
  if (version || settings) {
    into.what = version ? action::version : action::settings;
    return {};
  }
  if (limit->count() > 0) into.timeout_s = timeout;
  for (const auto& [name, value] : {std::pair{"--timeout", timeout}, std::pair{"--grace", into.grace_s},
                                    std::pair{"--abort-grace", into.abort_grace_s}})
    if (std::string wrong = check_seconds(name, value); !wrong.empty()) return wrong;
  if (std::string wrong = check_fabrics(into.fabric); !wrong.empty()) return wrong;
  if (std::string wrong = check_network(into); !wrong.empty()) return wrong;
  if (std::string wrong = parse_binding(bind, into.bind); !wrong.empty()) return wrong;
  if (std::string wrong = parse_hosts(hosts, into.hosts); !wrong.empty()) return wrong;
  if (std::string wrong = parse_mapping(map, into.map); !wrong.empty()) return wrong;
  // What is mapped to a core or a domain is bound to it, unless somebody says otherwise.
  if (into.bind == binding::automatic && into.map == mapping::core) into.bind = binding::core;
  if (into.bind == binding::automatic && into.map == mapping::numa) into.bind = binding::numa;
  into.input_asked = reader->count() > 0;
  if (input == "none") {
    into.input_rank = -1;
  } else if (!base::parse_number(input, into.input_rank) || into.input_rank < 0) {
    return fmt::format("option '--stdin' takes a rank or none, not '{}'", input);
  }
  return parse_programs(n->count() > 0, count, std::move(rest), into.programs);
}

}  // namespace verbena::launcher
