#include "transport/verbs/watcher.hpp"

#include <verbena/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>

namespace verbena::transport::verbs {
namespace {

constexpr int frequent_looks_ms = 50;  // so that letters of a rank that sleeps leave nearly when they are due

}  // namespace

watcher::watcher(ibv_comp_channel& channel, device_events& events, base::nanoseconds longest,
                 std::function<void()> wake)
    : channel_(channel),
      events_(events),
      longest_ms_(static_cast<int>(std::min<base::nanoseconds>(longest / base::millisecond, 1 << 30))),
      wake_(std::move(wake)),
      change_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!change_)
    throw error(errc::system, "cannot make an eventfd for the thread that watches the RDMA device");
  ::fcntl(channel.fd, F_SETFL, ::fcntl(channel.fd, F_GETFL) | O_NONBLOCK);
  sigset_t all, before;
  sigfillset(&all);  // the program's handlers run on the program's threads
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

watcher::~watcher() {
  const std::uint64_t one = 1;
  ends_.store(true, std::memory_order_relaxed);  // the write orders it
  if (::write(change_.get(), &one, sizeof one) == sizeof one) thread_.join();
}

void watcher::hurry(bool often) noexcept {
  if (hurries_.load(std::memory_order_relaxed) == often) return;  // this thread alone stores
  hurries_.store(often, std::memory_order_relaxed);               // the write orders it
  const std::uint64_t one = 1;
  if (often && ::write(change_.get(), &one, sizeof one) != sizeof one) return;  // full: it is readable
}

void watcher::watch() noexcept {
  for (;;) {
    pollfd wanted[3] = {
        {channel_.fd, POLLIN, 0}, {change_.get(), POLLIN, 0}, {events_.descriptor(), POLLIN, 0}};
    // While the port is down the rank looks now and then how long it has been.
    const bool often = events_.port_is_down() || hurries_.load(std::memory_order_relaxed);  // a hint
    const int ready = ::poll(wanted, 3, often ? frequent_looks_ms : longest_ms_);
    if (ready < 0) continue;
    std::uint64_t changes = 0;
    if (wanted[1].revents != 0 && ::read(change_.get(), &changes, sizeof changes) == sizeof changes &&
        ends_.load(std::memory_order_relaxed))  // ordered by the read
      return;
    if (ready == 0 || (wanted[2].revents != 0 && events_.read())) wake_();
    if (wanted[0].revents == 0) continue;
    ibv_cq* queue = nullptr;
    void* unused = nullptr;
    if (ibv_get_cq_event(&channel_, &queue, &unused) != 0) continue;
    ibv_ack_cq_events(queue, 1);
    wake_();  // the completion was there before the event
  }
}

}  // namespace verbena::transport::verbs
