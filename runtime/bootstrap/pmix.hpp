// Bootstrap through a PMIx server, and the decision whether there is one. The only file pair of the library
// that includes <pmix.h>.
//
// Environment set by rdmarun for each rank, beside PMIx's own:
//   VERBENA_RANK VERBENA_SIZE VERBENA_LOCAL_RANK VERBENA_LOCAL_SIZE   for the program's use (documented)
//   VERBENA_SEGMENT=FD:INODE:NAME   the inherited segment; if descriptor FD is not that inode (a wrapper
//                                   closed or reused it), connect to the abstract unix socket NAME and
//                                   receive it by SCM_RIGHTS
#pragma once

#include "base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

#include <memory>

namespace verbena::runtime {

/// Joins through the PMIx server in the environment. Without one: a job of one, unless the environment shows
/// that another launcher started several tasks (rank > 0, or a step of more than one: SLURM_STEP_NUM_TASKS,
/// PMI_SIZE, OMPI_COMM_WORLD_SIZE; never an allocation's variables alone): then throws
/// error{errc::not_in_job} naming the variables it saw and the cure. `settings.singleton` overrides.
std::unique_ptr<bootstrap> make_pmix_bootstrap(const base::settings& settings);

}  // namespace verbena::runtime
