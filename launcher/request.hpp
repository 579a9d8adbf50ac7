// From the command line to what is known to be right before anything is started: the ranks' environment, and what the options
// ask of each other and of this host.
#pragma once

#include "base/settings.hpp"
#include "launcher/environment.hpp"
#include "launcher/options.hpp"

#include <string>

namespace verbena::launcher {

/// The ranks' environment, or a sentence in `wrong`.
environment make_environment(const options& how, std::string& wrong);

/// What the library will read from it; throws verbena::error where it makes no sense.
base::settings settings_of(const environment& variables);

/// True if `name` is a name of this host as far as can be told without asking anybody.
bool is_this_host(const std::string& name, const std::string& host);

/// True if some rank belongs to another host.
bool needs_other_hosts(const options& how, const std::string& host);

/// What can be known to be wrong before anything is started; empty if nothing is.
std::string check_request(const options& how, unsigned size);

}  // namespace verbena::launcher
