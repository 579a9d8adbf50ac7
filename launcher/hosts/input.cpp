#include "launcher/hosts/input.hpp"

#include "launcher/process_setup.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace verbena::launcher {
namespace {

constexpr base::nanoseconds look_again = 200 * base::millisecond;

}  // namespace

input_source::input_source(event_loop& loop, std::function<void(std::string_view)> send)
    : loop_(loop), send_(std::move(send)) {
  struct stat about {};
  const bool known = ::fstat(0, &about) == 0;
  if (known && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) {
    reopened_.reset(::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (reopened_) fd_ = reopened_.get();
  }
  read_on();
}

input_source::~input_source() {
  watch(false);
  if (again_ != 0) loop_.cancel(again_);
}

bool input_source::taken(std::uint32_t bytes) {
  if (bytes > under_way_) return false;
  under_way_ -= bytes;
  if (!ended_ && !watching_ && again_ == 0) read_on();
  return true;
}

void input_source::stop() {
  ended_ = true;
  watch(false);
  reopened_.reset();
  fd_ = 0;
  release_standard_input();  // who writes into it shall notice
}

/// Reads what is there and may be sent. What the kernel can watch is read only when it says so, a file at once.
void input_source::read_on() {
  std::array<char, 16 * 1024> bytes;
  while (!ended_ && under_way_ < input_on_its_way) {
    if (!watching_) {
      watch(true);
      if (watching_) return;  // called again when there is something
    }
    const std::size_t room = std::min<std::size_t>(bytes.size(), input_on_its_way - under_way_);
    const long count = ::read(fd_, bytes.data(), room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0 && errno == EIO && ::isatty(fd_) == 1) {  // the terminal is somebody else's for a while
      watch(false);
      again_ = loop_.after(look_again, [this] {
        again_ = 0;
        read_on();
      });
      return;
    }
    if (count <= 0) {  // what cannot be read has ended
      stop();
      return send_({});
    }
    under_way_ += static_cast<std::uint32_t>(count);
    send_({bytes.data(), static_cast<std::size_t>(count)});
    if (watching_) break;  // another read might block
  }
  if (under_way_ >= input_on_its_way) watch(false);
}

void input_source::watch(bool wanted) {
  if (wanted == watching_) return;
  if (wanted) {
    watching_ = loop_.watch(fd_, EPOLLIN, [this](std::uint32_t) { read_on(); });
  } else {
    loop_.forget(fd_);
    watching_ = false;
  }
}

input_pipe::input_pipe(event_loop& loop, std::function<void(std::uint32_t, bool)> tell) : loop_(loop), tell_(std::move(tell)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const base::unique_fd read_end{ends[0]};
  write_end_.reset(ends[1]);
  ::fcntl(write_end_.get(), F_SETPIPE_SZ, input_in_pipe);
  ::fcntl(write_end_.get(), F_SETFL, O_NONBLOCK);
  ::dup2(read_end.get(), 0);
}

input_pipe::~input_pipe() {
  close();
}

bool input_pipe::take(std::string_view bytes) {
  if (!write_end_) return true;  // what was on its way when the rank had closed it
  if (bytes.empty()) ended_ = true;
  if (ended_ && !bytes.empty()) return false;
  if (queue_.size() + bytes.size() > input_on_its_way) return false;
  queue_ += bytes;
  pump();
  return true;
}

void input_pipe::pump() {
  std::uint32_t given = 0;
  bool full = false;
  while (!queue_.empty() && !full) {
    const long count = ::write(write_end_.get(), queue_.data(), queue_.size());
    if (count > 0) {
      queue_.erase(0, static_cast<std::size_t>(count));
      given += static_cast<std::uint32_t>(count);
    } else if (errno == EAGAIN) {
      full = true;
    } else if (errno != EINTR) {
      close();
      return tell_(0, true);
    }
  }
  if (full != watching_) {
    watching_ = full;
    if (full)
      loop_.watch(write_end_.get(), EPOLLOUT, [this](std::uint32_t) { pump(); });
    else
      loop_.forget(write_end_.get());
  }
  if (queue_.empty() && ended_) close();
  if (given > 0) tell_(given, false);
}

void input_pipe::close() {
  if (watching_) loop_.forget(write_end_.get());
  watching_ = false;
  queue_.clear();
  write_end_.reset();
}

}  // namespace verbena::launcher
