// How the processors of this machine are wired: a shallow look by hwloc (no caches, no devices, no plugins),
// made when a policy needs it. Processors that hwloc does not know, as with a masked /sys, are cores of their
// own.
#pragma once

#include "launcher/placement.hpp"

#include <string>
#include <vector>

namespace verbena::launcher {

/// The wiring of the processors `cpus`, in their order. `synthetic`: an invented machine in hwloc's notation
/// instead of this one ("pack:2 numa:1 core:4 pu:2").
std::vector<processor> wiring_of(const std::vector<unsigned>& cpus, const std::string& synthetic = {});

/// Keeps hwloc silent, and from loading its plugins (X11, OpenCL, XML, PCI): a third of a short job's start.
/// To be called before the first use of hwloc, libpmix's included; ranks do not see the setting.
void keep_hwloc_small();

}  // namespace verbena::launcher
