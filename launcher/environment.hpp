// The environment of the ranks, as a pure function of the launcher's own: what an outer job left is taken
// out, so that rdmarun works inside any other job, and what the user asked for is put in. The per-rank
// variables are added at the moment of the start, by whoever starts the rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

using environment = std::vector<std::string>;  ///< "NAME=value"

/// True for a variable that tells a process its place in some job, ours or another launcher's.
bool belongs_to_a_job(std::string_view name);

/// The inherited environment without the outer job's variables.
environment without_outer_job(const char* const* inherited);

/// Sets "NAME=value", replacing an earlier value.
void set_variable(environment& variables, std::string_view assignment);

/// What `-x` takes: "NAME=value" sets, "NAME" passes on (as is the default; kept for the habit), "NAME-"
/// removes. Returns an empty string, or what is wrong with it.
std::string apply_request(environment& variables, std::string_view request);

/// The value of a variable, or nullptr.
const char* find_variable(const environment& variables, std::string_view name);

/// For each variable that is one or two letters away from a setting of the library, and none itself: a sentence that says
/// so. Variables of the user's own that merely begin alike are left alone.
std::vector<std::string> misspelt_settings(const environment& variables);

}  // namespace verbena::launcher
