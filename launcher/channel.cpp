#include "launcher/channel.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <vector>

namespace verbena::launcher {

channel::channel(event_loop& loop, int fd) : loop_(loop), sink_(loop, fd) {
  sink_.on_room([this] {
    pause(false);
    if (on_room_) on_room_();
  });
  sink_.on_broken([this](int error) {
    while (!pipes_.empty()) close(pipes_.begin()->first);
    if (on_room_) on_room_();  // what still comes is dropped
    if (on_broken_) on_broken_(error);
  });
}

void channel::add(base::unique_fd pipe, std::string prefix) {
  const int fd = pipe.get();
  pipes_[fd] = {std::move(pipe), merger_.add_stream(std::move(prefix))};
  loop_.watch(fd, paused_ ? 0U : EPOLLIN, [this, fd](std::uint32_t) {
    if (!paused_) read_from(fd);
  });
}

void channel::say(std::string_view line) {
  if (sink_.broken()) return;
  merger_.insert(line, sink_.queue());
  sink_.pump();
}

bool channel::read_from(int fd) {
  static thread_local std::array<char, 64 * 1024> bytes;
  const long count = ::read(fd, bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    close(fd);
    return false;
  }
  take(pipes_[fd].stream, {bytes.data(), static_cast<std::size_t>(count)});
  return true;
}

bool channel::take(std::size_t stream, std::string_view bytes) {
  if (sink_.broken()) return true;
  last_input_ = base::steady_now();
  merger_.feed(stream, bytes, sink_.queue());
  if (sink_.queued() >= sink::room) sink_.pump();
  if (sink_.queued() >= sink::full) pause(true);
  if (merger_.holding() > 0) schedule_flush();
  return !paused_;
}

void channel::close(int fd) {
  const auto at = pipes_.find(fd);
  if (at == pipes_.end()) return;
  if (!sink_.broken()) merger_.flush(at->second.stream, sink_.queue());
  loop_.forget(fd);
  pipes_.erase(at);
}

void channel::pause(bool paused) {
  if (paused == paused_) return;
  paused_ = paused;
  // A paused pipe that ends reports EPOLLHUP for ever, so it leaves the loop altogether.
  for (auto& [fd, end] : pipes_) {
    loop_.forget(fd);
    if (!paused)
      loop_.watch(fd, EPOLLIN, [this, fd = fd](std::uint32_t) {
        if (!paused_) read_from(fd);
      });
  }
}

void channel::schedule_flush() {
  if (flush_scheduled_) return;
  flush_scheduled_ = true;
  loop_.after(prompt_delay, [this] { flush_quiet(); });
}

void channel::flush_quiet() {
  flush_scheduled_ = false;
  if (merger_.holding() == 0 || sink_.broken()) return;
  const base::nanoseconds silence = base::steady_now() - last_input_;
  const base::nanoseconds needed = merger_.holding() == 1 ? prompt_delay : prompts_delay;
  if (silence < needed) {
    flush_scheduled_ = true;
    loop_.after(needed - silence, [this] { flush_quiet(); });
    return;
  }
  for (std::size_t stream = 0; stream < merger_.streams(); ++stream) merger_.flush(stream, sink_.queue());
}

void channel::finish(base::nanoseconds patience) {
  const base::nanoseconds end = patience == base::never ? base::never : base::steady_now() + patience;
  const auto left = [end] { return end == base::never ? base::never : end - base::steady_now(); };
  std::vector<int> open;
  for (const auto& [fd, pipe] : pipes_) open.push_back(fd);
  for (const int fd : open) {
    // Nobody writes any more: what is in the pipe is all there is.
    while (!sink_.broken() && read_from(fd))
      if (sink_.queued() >= sink::full) sink_.drain(left());
    close(fd);
  }
  if (!sink_.broken())
    for (std::size_t stream = 0; stream < merger_.streams(); ++stream) merger_.flush(stream, sink_.queue());
  sink_.drain(left());
}

}  // namespace verbena::launcher
