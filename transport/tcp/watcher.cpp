#include "transport/tcp/watcher.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <csignal>
#include <cstdint>

namespace verbena::transport::tcp {

watcher::watcher(int epoll, std::function<void()> wake)
    : epoll_(epoll), wake_(std::move(wake)), call_(::eventfd(0, EFD_CLOEXEC)) {
  if (!call_) throw error(errc::system, "cannot make an eventfd for the thread that watches the sockets");
  sigset_t all, before;
  sigfillset(&all);  // the program's handlers run on the program's threads
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

watcher::~watcher() {
  ending_.store(true, std::memory_order_seq_cst);
  const std::uint64_t one = 1;
  if (::write(call_.get(), &one, sizeof one) == sizeof one) thread_.join();
}

void watcher::arm() noexcept {
  // Sequentially consistent, both: either the thread's exchange below comes later and it then reads `wanted_` set, or this
  // exchange finds false and calls it.
  wanted_.store(true, std::memory_order_seq_cst);
  if (armed_.exchange(true, std::memory_order_seq_cst)) return;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(call_.get(), &one, sizeof one));  // cannot fail: the count is far from its end
}

void watcher::watch() noexcept {
  while (!ending_.load(std::memory_order_seq_cst)) {
    const bool armed = armed_.load(std::memory_order_seq_cst);
    pollfd wanted[2] = {{call_.get(), POLLIN, 0}, {epoll_, POLLIN, 0}};
    if (::poll(wanted, armed ? 2 : 1, -1) < 0) continue;
    if (wanted[0].revents != 0) {
      std::uint64_t count = 0;
      static_cast<void>(!::read(call_.get(), &count, sizeof count));
      continue;
    }
    if (!armed || wanted[1].revents == 0) continue;
    armed_.exchange(false, std::memory_order_seq_cst);
    if (wanted_.load(std::memory_order_seq_cst)) wake_();
  }
}

}  // namespace verbena::transport::tcp
