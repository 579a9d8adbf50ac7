#include "command.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace verbena::tests {
namespace {

/// An unnamed file that a child writes and the parent reads afterwards.
class capture {
 public:
  capture() : fd_(::memfd_create("output", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("cannot make a file in memory");
    ::fcntl(fd_, F_SETFL, O_APPEND);  // several programs may write there
  }
  capture(const capture&) = delete;
  ~capture() { ::close(fd_); }
  int fd() const { return fd_; }

  std::string text() const {
    std::string all;
    std::array<char, 65536> part;
    for (off_t at = 0;;) {
      const ssize_t got = ::pread(fd_, part.data(), part.size(), at);
      if (got <= 0) return all;
      all.append(part.data(), static_cast<std::size_t>(got));
      at += got;
    }
  }

 private:
  int fd_;
};

/// On several hosts jobs run on those that VERBENA_TEST_HOSTS names, one rank to each in turn; beside pretend hosts
/// (tests/hosts/bed.py) they are started on the first of those, else here.
std::string where_it_runs(std::string command) {
  if (!on_several_hosts()) return command;
  const char* const bed = std::getenv("VERBENA_HOSTS_BED");
  const std::string here = "launcher/rdmarun ";
  const std::string there = (bed != nullptr ? std::string(bed) + "/in 1 $PWD/" : std::string()) + here +
                            "--map node -H " + std::getenv("VERBENA_TEST_HOSTS") + " ";
  for (std::size_t at = 0; (at = command.find(here, at)) != std::string::npos; at += there.size())
    command.replace(at, here.size(), there);
  return command;
}

[[noreturn]] void become(const std::string& command, const capture& output, const capture& errors) {
  ::setpgid(0, 0);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(output.fd(), STDOUT_FILENO);
  ::dup2(errors.fd(), STDERR_FILENO);
  if (::chdir(VERBENA_BUILD_ROOT) == 0) ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  ::_exit(127);
}

}  // namespace

finished run(const std::string& command, std::chrono::seconds limit) {
  capture output, errors;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) become(where_it_runs(command), output, errors);

  finished result;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline && !result.timed_out) {
      result.timed_out = true;
      ::kill(-child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = output.text();
  result.errors = errors.text();
  return result;
}

bool on_several_hosts() {
  return std::getenv("VERBENA_TEST_HOSTS") != nullptr;
}

std::string build_root() {
  return VERBENA_BUILD_ROOT;
}

std::string source_root() {
  return VERBENA_SOURCE_ROOT;
}

scratch_folder::scratch_folder() : path_("/tmp/verbena-test-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a folder in /tmp");
  ::chmod(path_.c_str(), 0755);
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace verbena::tests
