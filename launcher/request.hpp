// From the command line to what is known to be right before anything is started: the ranks' environment, and what the options
// ask of each other and of this host.
#pragma once

#include "base/settings.hpp"
#include "launcher/environment.hpp"
#include "launcher/hosts/slurm.hpp"
#include "launcher/options.hpp"

#include <optional>
#include <string>

namespace verbena::launcher {

/// Where rdmarun itself runs.
struct whereabouts {
  std::string host;                 ///< what this host calls itself
  std::optional<allocation> slurm;  ///< around us
};

/// The ranks' environment, of what rdmarun itself found (without_outer_job), or a sentence in `wrong`.
environment make_environment(const options& how, environment found, std::string& wrong);

/// What the library will read from it; throws verbena::error where it makes no sense.
base::settings settings_of(const environment& variables);

/// True if `name` is a name of this host as far as can be told without asking anybody. A host of the allocation is not, if
/// rdmarun runs outside of that: what is to be inside must be started by Slurm.
bool is_this_host(const std::string& name, const whereabouts& here);

/// True if rdmarun cannot be the parent of all ranks itself.
bool needs_other_hosts(const options& how, const whereabouts& here);

/// What can be known to be wrong before anything is started; empty if nothing is.
std::string check_request(const options& how, unsigned size);

}  // namespace verbena::launcher
