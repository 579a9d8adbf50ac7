#include "launcher/spawn.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace verbena::launcher {
namespace {

struct child_view {
  const spawn_request* request;
  spawn_result* result;
  pid_t parent;
};

/// _exit without its "noreturn", at which the address sanitizer would look for a stack that this child does
/// not have.
void leave() {
  ::syscall(SYS_exit_group, 127);
}

/// Runs in the child on the keeper's memory: system calls and writes to `result` only. Its errno is that of the thread that
/// waits for it.
int child_main(void* argument) {
  const child_view& view = *static_cast<child_view*>(argument);
  const spawn_request& r = *view.request;
  const auto give_up = [&view](start_step step) {
    view.result->step = step;
    view.result->error = errno;
    leave();
  };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != view.parent) leave();  // it died before the line above
  if (r.own_group) ::setpgid(0, 0);
  if (!r.cpus.empty() && ::syscall(SYS_sched_setaffinity, 0, r.cpus.size_bytes(), r.cpus.data()) != 0)
    view.result->binding_error = errno;
  // The sources lie above 2, so no copy destroys another's source; a copy onto its own number keeps
  // close-on-exec.
  if (r.input != 0) ::dup2(r.input, 0);
  ::dup2(r.output, 1);
  ::dup2(r.errors, 2);
  if (r.kept >= 0) ::fcntl(r.kept, F_SETFD, 0);
  if (r.directory != nullptr && ::chdir(r.directory) != 0) give_up(start_step::enter_directory);
  ::sigprocmask(SIG_SETMASK, &r.signal_mask, nullptr);
  // With a slash in it nothing is searched for; a script without a first line is given to the shell.
  if (::strchr(r.program, '/') != nullptr)
    ::execvpe(r.program, r.arguments, r.environment);
  else
    errno = ENOENT;
  give_up(start_step::execute);
  return 127;
}

/// Where children run until they execute, one at a time. Below it lies a page that nobody may touch.
class child_stack {
 public:
  /// The upper end of at least `bytes` bytes; null: the kernel gives no memory.
  std::byte* top(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    const std::size_t wanted = (bytes + page - 1) / page * page + page;
    if (wanted > size_) {
      if (base_ != nullptr) ::munmap(base_, size_);
      base_ = nullptr;
      size_ = 0;
      void* fresh = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
      if (fresh == MAP_FAILED) return nullptr;
      base_ = static_cast<std::byte*>(fresh);
      size_ = wanted;
      ::mprotect(base_, page, PROT_NONE);
    }
    return base_ + size_;
  }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

spawn_result spawn(const spawn_request& request, std::atomic<pid_t>* number) {
  static_assert(sizeof(std::atomic<pid_t>) == sizeof(pid_t) && std::atomic<pid_t>::is_always_lock_free);
  std::atomic<pid_t> unused{0};
  thread_local child_stack stack;  // for one rank after the other, and as long as the keeper
  std::size_t arguments = 0;
  while (request.arguments[arguments] != nullptr) ++arguments;
  // For a script without a first line execvpe makes a list of the arguments there.
  std::byte* const top = stack.top(64 * 1024 + (arguments + 2) * sizeof(char*));
  spawn_result result;
  result.step = start_step::execute;
  child_view view{&request, &result, ::getpid()};
  const pid_t pid =
      top == nullptr
          ? -1
          : ::clone(&child_main, top, CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, static_cast<void*>(&view),
                    reinterpret_cast<pid_t*>(number != nullptr ? number : &unused));
  if (pid < 0) {
    result.step = start_step::make_process;
    result.error = errno;
  } else if (result.error != 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {  // unless another thread has seen its end already
    }
  } else {
    result.pid = pid;
  }
  return result;
}

}  // namespace verbena::launcher
