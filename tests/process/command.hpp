// Runs a shell command as a user would, with a deadline, for tests that look at real processes.
#pragma once

#include <chrono>
#include <string>

namespace verbena::tests {

struct finished {
  int status = -1;         ///< exit status; 128 + signal if it was killed
  bool timed_out = false;  ///< then its whole process group was killed
  std::string output;
  std::string errors;
};

/// `command` is given to /bin/sh in the build folder. Paths there: launcher/rdmarun, benchmarks/vb_latency. With VERBENA_TEST_HOSTS
/// rdmarun gets that list of hosts.
finished run(const std::string& command, std::chrono::seconds limit = std::chrono::seconds(60));

/// True: the ranks of jobs run on several hosts, so what exists only within a node is not there.
bool on_several_hosts();

/// The build folder, the source folder.
std::string build_root();
std::string source_root();

/// A new folder below /tmp that any user may read, removed with everything in it.
class scratch_folder {
 public:
  scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  ~scratch_folder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace verbena::tests
