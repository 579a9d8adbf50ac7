// Inside an allocation of Slurm's: which hosts it has, how many ranks each is to take, whether this process is part of it, and
// what starts an agent on one of them. Pure: it is given the variables (man sbatch, OUTPUT ENVIRONMENT VARIABLES), and asks
// nobody.
#pragma once

#include "launcher/options.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

/// What a batch system has given to the user.
struct allocation {
  std::vector<host_slots> hosts;  ///< in its order
  /// Which of them this process runs on as a part of the job. Empty: on none, as below salloc, whose command runs where the user
  /// is, outside of what the system limits, accounts and ends; even if that host is one of the allocation.
  std::string here;

  bool has(std::string_view name) const;
};

/// The value of a variable, or nullptr.
using variable_lookup = std::function<const char*(const char*)>;

/// The allocation around this process, if there is one and rdmarun is to use it: not as one of several tasks of a step, each of
/// which has its own share, and not as a rank, which has nothing but its host. Returns the sentence to print if Slurm's
/// variables cannot be understood.
std::string find_allocation(const variable_lookup& lookup, std::optional<allocation>& into);

/// "h[01-03,7],login,r[0-1]n[1-2]-ib" as names, in that order. Returns what is wrong with it, or nothing.
std::string expand_nodelist(std::string_view list, std::vector<std::string>& into);

/// "4(x2),3" as 4, 4, 3. Returns what is wrong with it, or nothing.
std::string expand_counts(std::string_view list, std::vector<unsigned>& into);

/// What starts a program on a host of the allocation, as a step of one task that has all that the job has there, and beside
/// whatever else of the job runs there. The program's words follow.
std::vector<std::string> srun_words(const std::string& host);

}  // namespace verbena::launcher
