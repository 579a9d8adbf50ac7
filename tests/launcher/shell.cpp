#include "shell.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace verbena::tests {
namespace {

/// By system calls: a stream throws when the process goes away between open and read.
std::string read_all(const std::string& path) {
  const base::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text;
  char bytes[4096];
  for (ssize_t count; file && (count = ::read(file.get(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  return text;
}

std::string content(int fd) {
  std::string text;
  char bytes[65536];
  for (ssize_t count; (count = ::pread(fd, bytes, sizeof bytes, static_cast<off_t>(text.size()))) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  return text;
}

template <class Visit>
void for_each_process(const Visit& visit) {
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr == end && pid > 0) visit(pid);
  }
  ::closedir(directory);
}

struct stat_line {
  char state = 'X';
  pid_t parent = 0;
};

stat_line read_stat(pid_t pid) {
  const std::string text = read_all(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = text.rfind(')');
  stat_line line;
  if (end == std::string::npos || end + 4 >= text.size()) return line;
  line.state = text[end + 2];
  line.parent = static_cast<pid_t>(std::atoi(text.c_str() + end + 4));
  return line;
}

}  // namespace

shell_command::shell_command(const std::string& command, const variables& extra) {
  std::uint64_t random = 0;
  (void)::getrandom(&random, sizeof random, 0);
  mark_ = fmt::format("VERBENA_TEST_MARK={:016x}", random);
  folder_ = fmt::format("/tmp/launcher-test-{:016x}", random);
  ::mkdir(folder_.c_str(), 0777);
  ::chmod(folder_.c_str(), 01777);
  output_.reset(::memfd_create("output", MFD_CLOEXEC));
  errors_.reset(::memfd_create("errors", MFD_CLOEXEC));
  // Several programs write there: unlike a file's, the place in a memfd is not moved on by one of them at a time.
  for (const int fd : {output_.get(), errors_.get()}) ::fcntl(fd, F_SETFL, O_APPEND);
  std::vector<std::string> environment = {
      mark_,          "R=" RDMARUN_PATH,  "C=" CLIENT_PATH, "PEERS=" PMIX_PEERS_PATH,
      "T=" + folder_, "TMPDIR=" + folder_};
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string_view name = std::string_view{*v}.substr(0, std::string_view{*v}.find('='));
    const bool replaced =
        name == "TMPDIR" || name == "R" || name == "C" || name == "T" || extra.count(std::string{name}) != 0;
    if (!replaced) environment.emplace_back(*v);
  }
  for (const auto& [name, value] : extra) environment.push_back(name + "=" + value);
  std::vector<char*> pointers;
  for (std::string& v : environment) pointers.push_back(v.data());
  pointers.push_back(nullptr);
  begin_ = base::steady_now();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setsid();
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(output_.get(), 1);
    ::dup2(errors_.get(), 2);
    ::execle("/bin/sh", "sh", "-c", command.c_str(), nullptr, pointers.data());
    ::_exit(126);
  }
}

shell_command::~shell_command() {
  if (!waited_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const pid_t pid : alive()) ::kill(pid, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string shell_command::output() const {
  return content(output_.get());
}
std::string shell_command::errors() const {
  return content(errors_.get());
}

bool shell_command::says(const std::string& text, double patience_s) const {
  const base::nanoseconds end = base::steady_now() + static_cast<base::nanoseconds>(patience_s * 1e9);
  while (output().find(text) == std::string::npos) {
    if (base::steady_now() > end) return false;
    sleep_ms(5);
  }
  return true;
}

outcome shell_command::wait(double limit_s) {
  outcome result;
  const base::nanoseconds end = begin_ + static_cast<base::nanoseconds>(limit_s * 1e9);
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (base::steady_now() > end) {
      for (const pid_t pid : alive()) ::kill(pid, SIGKILL);
      ::waitpid(pid_, &status, 0);
      status = -1;
      break;
    }
    sleep_ms(1);
  }
  waited_ = true;
  result.seconds = static_cast<double>(base::steady_now() - begin_) / 1e9;
  if (status != -1) result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.output = output();
  result.errors = errors();
  return result;
}

std::vector<pid_t> shell_command::alive() const {
  std::vector<pid_t> found;
  for_each_process([&](pid_t pid) {
    const std::string environment = read_all(fmt::format("/proc/{}/environ", pid));
    if (environment.find(mark_) != std::string::npos && read_stat(pid).state != 'Z') found.push_back(pid);
  });
  return found;
}

std::vector<pid_t> shell_command::left_after(double patience_s) const {
  const base::nanoseconds end = base::steady_now() + static_cast<base::nanoseconds>(patience_s * 1e9);
  while (true) {
    const std::vector<pid_t> found = alive();
    if (found.empty() || base::steady_now() > end) return found;
    sleep_ms(10);
  }
}

std::vector<std::string> shell_command::files_left() const {
  std::vector<std::string> found;
  const auto look = [&](const std::string& folder, bool everything) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator{folder, gone}) {
      const std::string name = entry.path().filename();
      if (everything || name.find("pmix") != std::string::npos || name.find("verbena") != std::string::npos ||
          name.find("rdmarun") != std::string::npos)
        found.push_back(entry.path());
    }
  };
  look(folder_, true);
  look("/dev/shm", false);
  return found;
}

outcome shell(const std::string& command, const shell_command::variables& extra, double limit_s) {
  shell_command one{command, extra};
  return one.wait(limit_s);
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for_each_process([&](pid_t pid) {
    if (const stat_line line = read_stat(pid); line.parent == parent && line.state != 'Z')
      found.push_back(pid);
  });
  return found;
}

std::string command_name(pid_t pid) {
  std::string name = read_all(fmt::format("/proc/{}/comm", pid));
  if (!name.empty()) name.pop_back();
  return name;
}

void sleep_ms(int ms) {
  const timespec time{ms / 1000, (ms % 1000) * 1'000'000L};
  ::nanosleep(&time, nullptr);
}

}  // namespace verbena::tests
