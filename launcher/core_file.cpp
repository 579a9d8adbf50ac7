#include "launcher/core_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace verbena::launcher {
namespace {

std::string read_line(const char* path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string describe_core(std::string_view pattern, bool uses_pid, pid_t pid, std::string_view directory) {
  if (pattern.empty()) return "core dumped";
  if (pattern.front() == '|') {
    pattern.remove_prefix(1);
    return fmt::format("core handed to '{}'", pattern.substr(0, pattern.find(' ')));
  }
  std::string name;
  bool has_pid = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    const char what = ++i < pattern.size() ? pattern[i] : '\0';
    if (what == '%') {
      name += '%';
    } else if (what == 'p' || what == 'P') {
      name += fmt::format("{}", pid);
      has_pid = true;
    } else {
      return "core dumped";  // the program's or the host's name, a time: not to be guessed
    }
  }
  if (uses_pid && !has_pid) name += fmt::format(".{}", pid);
  if (name.front() == '/' || directory.empty()) return fmt::format("core dumped to '{}'", name);
  return fmt::format("core dumped to '{}/{}'", directory, name);
}

std::string describe_core(pid_t pid, std::string_view directory) {
  std::error_code gone;
  const std::string here = std::filesystem::current_path(gone).string();
  const std::string uses_pid = read_line("/proc/sys/kernel/core_uses_pid");
  return describe_core(read_line("/proc/sys/kernel/core_pattern"), !uses_pid.empty() && uses_pid[0] == '1',
                       pid, directory.empty() ? std::string_view{here} : directory);
}

}  // namespace verbena::launcher
