#include "launcher/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace verbena::launcher {
namespace {

/// Nothing but sockets, memory domains, cores and processors is looked at.
void keep_shallow(hwloc_topology_t topology) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // Memory domains inside a socket hang on groups: without them every core would seem to be near all memory.
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                         HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  // The x86 component asks each processor by moving to it, the others look at devices.
  for (const char* deep : {"x86", "pci", "linuxio"})
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, deep);
}

unsigned number_of(hwloc_obj_t object) {
  return object == nullptr ? 0 : object->logical_index;
}

}  // namespace

void keep_hwloc_small() {
  ::setenv("HWLOC_PLUGINS_PATH", "/proc/self/no-plugins", 1);
  ::setenv("HWLOC_HIDE_ERRORS", "2", 1);  // a masked /sys is no news
}

std::vector<processor> wiring_of(const std::vector<unsigned>& cpus, const std::string& synthetic) {
  std::map<unsigned, processor> known;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    keep_shallow(topology);
    const bool chosen = synthetic.empty() || hwloc_topology_set_synthetic(topology, synthetic.c_str()) == 0;
    if (chosen && hwloc_topology_load(topology) == 0) {
      for (hwloc_obj_t pu = nullptr;
           (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
        const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        const hwloc_obj_t socket = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
        const int node = pu->nodeset == nullptr ? -1 : hwloc_bitmap_first(pu->nodeset);
        const hwloc_obj_t numa =
            node < 0 ? nullptr : hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(node));
        // Without cores in the picture each processor is one.
        known[pu->os_index] = {pu->os_index, core != nullptr ? core->logical_index : pu->logical_index,
                               number_of(numa), number_of(socket)};
      }
    }
    hwloc_topology_destroy(topology);
  }
  unsigned next_core = 0;
  for (const auto& [cpu, its] : known) next_core = std::max(next_core, its.core + 1);
  std::vector<processor> wired;
  for (const unsigned cpu : cpus) {
    const auto at = known.find(cpu);
    wired.push_back(at != known.end() ? at->second : processor{cpu, next_core++, 0, 0});
  }
  return wired;
}

}  // namespace verbena::launcher
