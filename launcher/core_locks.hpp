// Which cores does a job of this machine hold for its bound ranks? Said by locks on bytes of /dev/null, one
// byte per processor: open-file-description locks need no file of ours, no daemon and no rights, they are
// seen across users, and the kernel drops them with the last descriptor, whatever ended the job. The keeper
// inherits the descriptor, so the cores are held until the last rank is gone, even after a kill -9 of
// rdmarun.
//
// Jobs see each other if they see the same /dev/null: all of one machine, or of one container.
#pragma once

#include "base/fd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace verbena::launcher {

class core_locks {
 public:
  /// `path`: another file to lock, for tests; it must exist and be writable.
  explicit core_locks(const std::string& path = "/dev/null");

  /// Those of `cpus` (ascending) that another job holds; nothing where locks are not to be had.
  std::optional<std::vector<unsigned>> held_by_others(const std::vector<unsigned>& cpus) const;

  /// Takes all of `cpus`, or none and returns false.
  bool take(const std::vector<unsigned>& cpus) const;

 private:
  bool lock(unsigned begin, unsigned end, short type) const;
  void find(unsigned begin, unsigned end, std::vector<unsigned>& found, bool& known) const;

  base::unique_fd file_;
};

}  // namespace verbena::launcher
