// Runs shell commands that use the built rdmarun, as a person would, and finds out what they left behind.
// Every process of a command carries a mark in its environment, so descendants are found wherever they have
// gone: other sessions, other parents. In a command, $R is rdmarun, $C the test's PMIx client, $T an empty
// folder, also the command's TMPDIR.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace verbena::tests {

struct outcome {
  int status = -1;  ///< as a shell's: 128 + signal; -1: not over at the deadline (and killed)
  std::string output;
  std::string errors;
  double seconds = 0;
};

class shell_command {
 public:
  using variables = std::map<std::string, std::string>;

  /// Starts /bin/sh -c `command`, in a session of its own.
  explicit shell_command(const std::string& command, const variables& extra = {});
  shell_command(const shell_command&) = delete;
  shell_command& operator=(const shell_command&) = delete;
  ~shell_command();  ///< kills what is left

  pid_t pid() const { return pid_; }
  const std::string& folder() const { return folder_; }

  /// What it has written so far.
  std::string output() const;
  std::string errors() const;
  /// Waits until the output contains `text`; false if it does not in time.
  bool says(const std::string& text, double patience_s = 5) const;

  outcome wait(double limit_s = 30);

  /// Processes of this command that are alive (no zombies).
  std::vector<pid_t> alive() const;
  /// The same, once they had `patience_s` to go; empty is good.
  std::vector<pid_t> left_after(double patience_s) const;
  /// Files that the command left in its TMPDIR or /dev/shm.
  std::vector<std::string> files_left() const;

 private:
  pid_t pid_ = -1;
  bool waited_ = false;
  std::string mark_;
  std::string folder_;
  base::unique_fd output_;
  base::unique_fd errors_;
  base::nanoseconds begin_ = 0;
};

/// Runs to the end.
outcome shell(const std::string& command, const shell_command::variables& extra = {}, double limit_s = 30);

/// Processes whose parent is `pid`.
std::vector<pid_t> children_of(pid_t pid);
std::string command_name(pid_t pid);

void sleep_ms(int ms);

}  // namespace verbena::tests
