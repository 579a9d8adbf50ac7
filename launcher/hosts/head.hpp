// A job on several hosts, from rdmarun's side: starts an agent on each, lets them in, tells them the job, and then runs it as
// one of a single host is run (launch.hpp), with a remote_node for each.
//
//   start agents -> each comes back and says hello -> ranks are mapped to hosts -> each gets the plan, says ready -> launch
#pragma once

#include "launcher/options.hpp"
#include "launcher/request.hpp"

namespace verbena::launcher {

/// Returns the exit status.
int run_on_hosts(const options& how, const whereabouts& here);

}  // namespace verbena::launcher
