// What this process has registered with RDMA devices, as the kernel tells it.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <sstream>
#include <string>

namespace verbena::tests {

/// One line per memory region of this process; `rdma` numbers them, so an equal list means the same regions.
inline std::string registered_regions() {
  std::string text;
  FILE* const pipe = ::popen("rdma resource show mr", "r");
  char part[4096];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  ::pclose(pipe);
  std::istringstream lines(text);
  std::string mine, line;
  const std::string mark = " pid " + std::to_string(::getpid()) + " ";
  while (std::getline(lines, line))
    if (line.find(mark) != std::string::npos) mine += line + "\n";
  return mine;
}

/// Of so many bytes, or a little more.
inline bool has_region_of(const std::string& list, std::size_t bytes) {
  std::istringstream words(list);
  std::string word;
  while (words >> word) {
    std::size_t length = 0;
    if (word == "mrlen" && words >> length && length >= bytes && length < bytes + bytes / 4) return true;
  }
  return false;
}

}  // namespace verbena::tests
