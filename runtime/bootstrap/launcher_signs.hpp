// Reads from the environment what started this process. Pure, so that every combination can be tested: it must not know
// PMIx beyond the names of its variables.
#pragma once

#include <functional>
#include <string>

namespace verbena::runtime {

using variable_lookup = std::function<const char*(const char*)>;

/// True if the environment tells of a PMIx server to join.
bool has_pmix_server(const variable_lookup& lookup);

/// "rdmarun", "slurm" or "a PMIx server", given that there is a server.
std::string name_of_launcher(const variable_lookup& lookup);

/// Where there is no PMIx server: the sentence that refuses to run as a job of one, if a launcher has started several
/// tasks; empty if nothing speaks against it. An allocation alone (a batch script) is no such sign.
std::string refusal_without_server(const variable_lookup& lookup);

}  // namespace verbena::runtime
