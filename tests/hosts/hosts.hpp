// Commands on the pretend hosts that bed.py has made.
#pragma once

#include "tests/launcher/shell.hpp"

#include <cstdlib>
#include <string>

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

/// What runs on a host but its sshd, one a line; empty: nothing. The dead that wait for their parents do not count.
inline std::string processes_on(int host) {
  const outcome seen = shell(in_host() + " " + std::to_string(host) + " ps -eo stat=,comm= | grep -v -e '^Z' -e ' sshd$' -e ' ps$'");
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
