#include "launcher/sink.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace verbena::launcher {

sink::sink(event_loop& loop, int fd) : loop_(loop), fd_(fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return;
  if (S_ISSOCK(about.st_mode)) {
    kind_ = kind::socket;
  } else if (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)) {
    kind_ = kind::careful;
    reopened_.reset(
        ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (reopened_) {
      fd_ = reopened_.get();
      kind_ = kind::nonblocking;
    }
  }
}

sink::~sink() {
  set_watching(false);
}

long sink::write_some() {
  constexpr std::size_t surely_taken =
      4096;  // PIPE_BUF: what a pipe that polls writable takes without blocking
  const char* at = queue_.data() + written_;
  const std::size_t left = queued();
  switch (kind_) {
    case kind::socket:
      return ::send(fd_, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    case kind::careful: {
      pollfd ready{fd_, POLLOUT, 0};
      if (::poll(&ready, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(fd_, at, std::min(left, surely_taken));
    }
    case kind::file:
    case kind::nonblocking:
      break;
  }
  return ::write(fd_, at, left);
}

void sink::pump() {
  if (queued() >= full) was_full_ = true;
  while (!broken_ && queued() > 0) {
    const long count = write_some();
    if (count >= 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
  if (queued() == 0) {
    queue_.clear();
    written_ = 0;
  } else if (written_ > room) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  set_watching(queued() > 0);
  if (was_full_ && queued() <= room) {
    was_full_ = false;
    if (on_room_) on_room_();
  }
}

void sink::set_watching(bool wanted) {
  if (wanted == watching_) return;
  watching_ = wanted;
  if (!wanted)
    loop_.forget(fd_);
  else if (!loop_.watch(fd_, EPOLLOUT, [this](std::uint32_t) { pump(); }))
    watching_ = false;  // a file: never refuses for long, the next pump goes on
}

void sink::fail(int error) {
  broken_ = true;
  queue_.clear();
  written_ = 0;
  if (on_broken_) on_broken_(error);
}

void sink::drain(base::nanoseconds patience) {
  const base::nanoseconds end = patience == base::never ? base::never : base::steady_now() + patience;
  for (pump(); !broken_ && queued() > 0 && base::steady_now() < end; pump()) {
    pollfd ready{fd_, POLLOUT, 0};
    ::poll(&ready, 1, 50);
  }
}

}  // namespace verbena::launcher
