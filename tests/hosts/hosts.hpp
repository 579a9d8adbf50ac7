// Commands on the pretend hosts that bed.py has made.
#pragma once

#include "tests/launcher/shell.hpp"

#include <cstdlib>
#include <algorithm>
#include <string>
#include <vector>

namespace verbena::tests {

/// "PATH/in": `in 1 COMMAND` runs a command on host h1.
inline std::string in_host() {
  const char* bed = std::getenv("VERBENA_HOSTS_BED");
  return bed != nullptr ? std::string(bed) + "/in" : "bed.py-has-not-started-this";
}

/// On host h1, as its user would.
inline std::string on_h1(const std::string& command) {
  return "exec " + in_host() + " 1 " + command;
}

using lines = std::vector<std::string>;

inline lines sorted_lines(const std::string& text) {
  lines all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// What runs on a host but its daemons, one a line; empty: nothing. The dead that wait for their parents do not count.
inline std::string processes_on(int host) {
  const outcome seen = shell(in_host() + " " + std::to_string(host) + " ps -eo stat=,comm= | grep -v -E '^Z| (sshd|slurmctld|slurmscriptd|slurmd|munged|ps)$'");
  return seen.output;
}

/// The same once it had `patience_s` to go.
inline std::string left_on(int host, double patience_s) {
  std::string seen;
  const base::nanoseconds end = base::steady_now() + static_cast<base::nanoseconds>(patience_s * 1e9);
  do {
    seen = processes_on(host);
    if (seen.empty()) break;
    sleep_ms(20);
  } while (base::steady_now() < end);
  return seen;
}

}  // namespace verbena::tests
