#include "launcher/event_loop.hpp"

#include "base/check.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace verbena::launcher {

event_loop::event_loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  base::check(static_cast<bool>(epoll_), "epoll_create1 succeeds");
}

bool event_loop::watch(int fd, std::uint32_t events, handler on_event) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) return false;
  watched_[fd] = std::make_shared<watched>(watched{std::move(on_event)});
  return true;
}

void event_loop::change(int fd, std::uint32_t events) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.fd = fd;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &wanted);
}

void event_loop::forget(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(fd);
}

event_loop::timer event_loop::after(base::nanoseconds delay, std::function<void()> action) {
  const timer id = next_timer_++;
  timers_.emplace(std::pair{base::steady_now() + delay, id}, std::move(action));
  return id;
}

void event_loop::cancel(timer id) {
  const auto at =
      std::find_if(timers_.begin(), timers_.end(), [id](const auto& t) { return t.first.second == id; });
  if (at != timers_.end()) timers_.erase(at);
}

int event_loop::sleep_ms() const {
  if (timers_.empty()) return -1;
  const base::nanoseconds left = timers_.begin()->first.first - base::steady_now();
  if (left <= 0) return 0;
  return static_cast<int>(std::min<base::nanoseconds>(left / base::millisecond + 1, 3'600'000));
}

void event_loop::fire_timers() {
  while (!stopped_ && !timers_.empty() && timers_.begin()->first.first <= base::steady_now()) {
    const auto action = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    action();
  }
}

void event_loop::run() {
  std::array<epoll_event, 64> ready;
  while (!stopped_) {
    if (hook_) hook_();
    if (stopped_) break;
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), sleep_ms());
    base::check(count >= 0 || errno == EINTR, "epoll_wait succeeds");
    for (int i = 0; i < count && !stopped_; ++i) {
      // A handler may forget other descriptors, and its own: look it up again, and keep it alive while it
      // runs.
      const auto at = watched_.find(ready[static_cast<std::size_t>(i)].data.fd);
      if (at == watched_.end()) continue;
      const std::shared_ptr<watched> alive = at->second;
      alive->on_event(ready[static_cast<std::size_t>(i)].events);
    }
    fire_timers();
  }
  stopped_ = false;  // it may run again
}

}  // namespace verbena::launcher
