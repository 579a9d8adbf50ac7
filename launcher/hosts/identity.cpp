#include "launcher/hosts/identity.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

namespace verbena::launcher {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  return fmt::format("{} {}", boot, network.st_ino);
}

}  // namespace verbena::launcher
