// How much processor this process may use: its affinity mask, and the quota of its control group (v1 and v2),
// without any library. Works with a masked or missing /sys: then there is no quota to be seen.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::base {

/// The processors in the affinity mask of the calling thread, ascending; empty where the kernel does not say.
std::vector<unsigned> mask_cpus();
/// How many they are; at least 1.
unsigned mask_cores() noexcept;

/// Processors' worth of time per time that the control group and its ancestors allow ("0.5", "3"); nothing:
/// no quota. `proc_cgroup` is the text of /proc/self/cgroup, `root` the folder where control groups are
/// mounted.
std::optional<double> cpu_quota(std::string_view proc_cgroup, const std::string& root);
std::optional<double> cpu_quota();

/// Cores worth having a rank for: the mask, or the quota rounded up if that is less.
unsigned usable_cores();
unsigned usable_cores(unsigned mask, std::optional<double> quota);

}  // namespace verbena::base
