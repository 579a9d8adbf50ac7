// On which processors does each rank run? A pure function of what may be used, how it is wired, what was
// asked for and what other jobs hold: nothing is looked up on the machine and nothing is bound here.
//
// It never leaves the processors it is given, gives every rank whole cores, and never gives two ranks a core
// while another one is idle. Where binding would be of no use it says so, and the ranks keep the caller's
// mask.
#pragma once

#include "launcher/hosts/mapping.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

/// One processor (hardware thread) that the job may use, and where it sits. Processors with the same `core`
/// are the threads of one core. The numbers of cores, domains and sockets are unique in the machine.
struct processor {
  unsigned cpu = 0;  ///< the kernel's number
  unsigned core = 0;
  unsigned numa = 0;
  unsigned socket = 0;
};

enum class binding { automatic, none, core, numa, socket };

struct placement_request {
  binding policy = binding::automatic;
  unsigned ranks = 1;
  std::vector<processor> processors;  ///< the caller's mask
  unsigned usable_cores =
      1;  ///< the same after the quota: never more ranks than this are bound by `automatic`
  std::vector<unsigned> held;  ///< processors on which another job has bound ranks
  mapping map = mapping::slot;  ///< of the ranks to cores or domains, where the policy gives them such
};

struct placement {
  std::vector<std::vector<unsigned>> cpus;  ///< of each rank, ascending; no entries at all: not bound
  std::string reason;                       ///< why not bound, or what is shared; may be empty
  bool shares_with_others = false;          ///< some of `cpus` were held
  unsigned cores = 1;                       ///< how many ranks can be awake without two sharing a core

  bool bound() const { return !cpus.empty(); }
};

/// - core: each rank one core. numa, socket: each rank all free cores of one domain.
/// - automatic: each rank its even share of the free cores, neighbours next to each other; not bound if the
///   ranks are more than the free cores or the quota, or there is one rank only.
/// Cores that another job holds are used only if the policy was asked for and the free ones do not suffice.
/// With more ranks than cores, consecutive ranks share.
///
/// Mapped by numa, consecutive ranks lie in different domains, each on the next core of its own, as long as the domain has
/// one; mapped by core, on consecutive cores from the first on, also where they get the domain around it. Otherwise they are
/// dealt over all cores, in proportion.
placement place(const placement_request& request);

/// "0-3,8"
std::string describe_cpus(const std::vector<unsigned>& cpus);

/// The PMIx locality string of a rank bound to `cpus`: "hwloc:SK0:NM0:CR1:HT2-3", by the numbers in
/// `processors`.
std::string locality_of(const std::vector<unsigned>& cpus, const std::vector<processor>& processors);

/// In words: "processors 4-7: cores 2-3, numa domain 1, socket 1".
std::string describe_place(const std::vector<unsigned>& cpus, const std::vector<processor>& processors);

/// Reads what follows --bind, in our words, Open MPI's and MPICH's. Empty, or the sentence to print.
std::string parse_binding(std::string_view text, binding& into);

}  // namespace verbena::launcher
