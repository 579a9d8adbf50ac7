#include "launcher/spawn.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

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

/// Runs in the child on the keeper's memory: system calls and writes to `result` only.
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
  ::execvpe(r.arguments[0], r.arguments, r.environment);
  give_up(start_step::execute);
  return 127;
}

}  // namespace

spawn_result spawn(const spawn_request& request) {
  alignas(16) static std::byte
      stack[64 * 1024];  // execvpe keeps a path and, for a script, the argument list on it
  spawn_result result;
  result.step = start_step::execute;
  child_view view{&request, &result, ::getpid()};
  const pid_t pid =
      ::clone(&child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, static_cast<void*>(&view));
  if (pid < 0) {
    result.step = start_step::make_process;
    result.error = errno;
  } else if (result.error != 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  } else {
    result.pid = pid;
  }
  return result;
}

}  // namespace verbena::launcher
