// What libpmix and hwloc would call of two libraries that rdmarun does not need, if they are linked into it: libmunge, for
// credentials that nobody here is asked for (pmix_server.cpp says psec=none), and libudev, for the names of disks and network
// cards. Each answers "not here", as it would on a machine without the service behind it; libpmix and hwloc expect
// that. To load the two cost 0.15 ms of every start.
extern "C" {

int munge_encode(char** credential, void*, const void*, int) {
  *credential = nullptr;
  return 1;  // EMUNGE_SNAFU
}
int munge_decode(const char*, void*, void**, int*, unsigned*, unsigned*) {
  return 1;
}
const char* munge_strerror(int) {
  return "libmunge is not part of rdmarun";
}

void* udev_new() {
  return nullptr;
}
void* udev_unref(void*) {
  return nullptr;
}
void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) {
  return nullptr;
}
const char* udev_device_get_property_value(void*, const char*) {
  return nullptr;
}
void* udev_device_unref(void*) {
  return nullptr;
}

}  // extern "C"

#ifdef VERBENA_TRY_TO_LINK  // what meson asks, once
#include <hwloc.h>
#include <pmix_server.h>

int main() {
  hwloc_topology_t topology;
  return hwloc_topology_init(&topology) + PMIx_server_init(nullptr, nullptr, 0);
}
#endif
