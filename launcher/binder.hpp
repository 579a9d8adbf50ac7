// From the request on the command line to a placement that is held: asks for the wiring and for other jobs'
// cores only as far as the policy needs them, lets place() decide, and takes the locks.
#pragma once

#include "launcher/core_locks.hpp"
#include "launcher/placement.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::launcher {

struct bound_job {
  placement where;
  std::vector<processor> processors;  ///< wiring of the mask; empty if nobody asked
};

/// `mask`: the processors this command may use; `usable`: how many of them, after the quota. The cores are held through
/// `locks`.
bound_job bind_job(binding policy, mapping map, unsigned ranks, const std::vector<unsigned>& mask,
                   unsigned usable, const core_locks& locks);

/// One line per rank of this host, for --report-bindings.
std::string describe_bindings(const bound_job& job, const std::vector<std::uint32_t>& ranks,
                              const std::vector<unsigned>& mask, const std::string& host);

}  // namespace verbena::launcher
