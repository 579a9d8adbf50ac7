// A PMIx client that knows nothing of this library: says what the keys about its place tell, and whether
// libpmix and the kernel agree with them.
#include <pmix.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string get(const pmix_proc_t& whose, const char* key) {
  pmix_value_t* value = nullptr;
  pmix_info_t now;
  bool yes = true;
  PMIX_INFO_CONSTRUCT(&now);
  PMIX_INFO_LOAD(&now, PMIX_OPTIONAL, &yes, PMIX_BOOL);
  if (PMIx_Get(&whose, key, &now, 1, &value) != PMIX_SUCCESS || value == nullptr) return "nothing";
  std::string text = value->type == PMIX_STRING ? value->data.string : "no string";
  PMIX_VALUE_RELEASE(value);
  return text;
}

/// The processors in a list such as "hwloc:0-2,5", and those of the calling process.
bool is_own_mask(const std::string& text) {
  cpu_set_t named, own;
  CPU_ZERO(&named);
  if (text.compare(0, 6, "hwloc:") != 0) return false;
  for (const char* at = text.c_str() + 6; *at != '\0';) {
    char* end = nullptr;
    const unsigned long first = std::strtoul(at, &end, 10);
    const unsigned long last = *end == '-' ? std::strtoul(end + 1, &end, 10) : first;
    for (unsigned long cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &named);
    at = *end == ',' ? end + 1 : end;
  }
  return ::sched_getaffinity(0, sizeof own, &own) == 0 && CPU_EQUAL(&named, &own) != 0;
}

}  // namespace

int main() {
  pmix_proc_t self;
  if (PMIx_Init(&self, nullptr, 0) != PMIX_SUCCESS) return 3;
  const std::string cpus = get(self, PMIX_CPUSET), place = get(self, PMIX_LOCALITY_STRING);
  std::string says = "rank " + std::to_string(self.rank) + " cpuset " + cpus + " locality " + place;
  if (is_own_mask(cpus)) says += ", as the kernel has it";
  if (self.rank == 1) {
    pmix_proc_t first = self;
    first.rank = 0;
    pmix_locality_t common = 0;
    const std::string there = get(first, PMIX_LOCALITY_STRING);
    // libpmix 4.2.2 answers PMIX_ERR_TAKE_NEXT_OPTION although it has found what they share; for a string
    // that it does not understand it finds nothing.
    PMIx_Get_relative_locality(place.c_str(), there.c_str(), &common);
    if (common != 0) {
      says +=
          (common & PMIX_LOCALITY_SHARE_CORE) != 0 ? ", shares a core with rank 0" : ", no core with rank 0";
      says += (common & PMIX_LOCALITY_SHARE_PACKAGE) != 0 ? ", its socket" : "";
    }
  }
  std::puts(says.c_str());
  PMIx_Finalize(nullptr, 0);
  return 0;
}
