#include "launcher/hosts/starter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

namespace verbena::launcher {
namespace {

/// In a fresh child: signals as programs expect them, and death with the parent.
void become_ordinary(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

starter::starter(event_loop& loop, const std::vector<std::string>& command, const std::string& input,
                 std::function<void(int)> on_end)
    : loop_(loop), on_end_(std::move(on_end)) {
  int in[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return;
  base::unique_fd in_read{in[0]}, in_write{in[1]};
  if (::pipe2(err, O_CLOEXEC) != 0) return;
  errors_.reset(err[0]);
  base::unique_fd err_write{err[1]};
  const std::vector<char*> words = pointers(command);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_ordinary(parent);
    ::setsid();
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(in_read.get(), 0);
    ::dup2(nothing, 1);
    ::dup2(err_write.get(), 2);
    ::execvp(words[0], words.data());
    ::dprintf(2, "cannot run '%s': %s\n", words[0], std::strerror(errno));
    ::_exit(127);
  }
  if (pid < 0) return;
  pid_ = pid;
  ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  // A line fits into an empty pipe.
  [[maybe_unused]] const auto written = ::write(in_write.get(), input.data(), input.size());
  handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (handle_) loop_.watch(handle_.get(), EPOLLIN, [this](std::uint32_t) { reap(WNOHANG); });
  loop_.watch(errors_.get(), EPOLLIN, [this](std::uint32_t) { take_words(); });
}

starter::~starter() {
  on_end_ = {};
  if (pid_ > 0) {
    ::kill(-pid_, SIGTERM);  // the leader of its session
    finish(base::second);
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      reap(0);
    }
  }
  if (errors_) loop_.forget(errors_.get());
}

void starter::take_words() {
  std::array<char, 4096> bytes;
  while (errors_) {
    const long count = ::read(errors_.get(), bytes.data(), bytes.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      loop_.forget(errors_.get());
      errors_.reset();
      return;
    }
    words_.append(bytes.data(), static_cast<std::size_t>(count));
    if (words_.size() > 8192) words_.erase(0, words_.size() - 4096);
  }
}

std::string starter::words() {
  take_words();
  std::string text = words_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

void starter::finish(base::nanoseconds patience) {
  if (pid_ <= 0) return;
  pollfd end{handle_.get(), POLLIN, 0};
  if (handle_) ::poll(&end, 1, static_cast<int>(patience / base::millisecond));
  reap(WNOHANG);
}

void starter::reap(int flags) {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(pid_, &status, flags) != pid_) return;
  pid_ = -1;
  if (handle_) loop_.forget(handle_.get());
  handle_.reset();
  if (on_end_) on_end_(status);
}

bool turned_away(std::string_view words, int code) {
  constexpr int error_of_ssh = 255;
  constexpr std::string_view signs[] = {"exchange_identification", "Connection closed by", "Connection reset by",
                                        "banner exchange", "MaxStartups", "Not allowed at this time"};
  return code == error_of_ssh && std::any_of(std::begin(signs), std::end(signs), [words](std::string_view sign) {
           return words.find(sign) != std::string_view::npos;
         });
}

base::unique_fd start_own_agent(pid_t& pid) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  base::unique_fd ours{ends[0]}, theirs{ends[1]};
  const std::string option = fmt::format("--agent={}", theirs.get());
  const pid_t parent = ::getpid();
  pid = ::fork();
  if (pid == 0) {
    become_ordinary(parent);
    ::fcntl(theirs.get(), F_SETFD, 0);
    ::execl("/proc/self/exe", "rdmarun", option.c_str(), nullptr);
    ::_exit(127);
  }
  if (pid < 0) return {};
  return ours;
}

}  // namespace verbena::launcher
