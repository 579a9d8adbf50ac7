#include "launcher/start_crew.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace verbena::launcher {

start_crew::start_crew(unsigned helpers, on_result tell)
    : tell_(std::move(tell)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) return;
  try {
    while (helpers_.size() < helpers) {
      auto one = std::make_unique<helper>();
      one->thread = std::thread([this, self = one.get()] { help(*self); });
      helpers_.push_back(std::move(one));
    }
  } catch (const std::system_error&) {  // the user may have no more threads: it is done with fewer
  }
}

void start_crew::help(helper& self) const {
  while (true) {
    for (int seen; (seen = self.now.load(std::memory_order_acquire)) != working;)
      self.now.wait(seen);  // task is visible
    self.result = spawn(self.task->request, &self.pid);
    self.now.store(done, std::memory_order_release);  // with the result
    self.now.notify_one();
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  }
}

void start_crew::start(std::unique_ptr<start_task> task) {
  for (const auto& each : helpers_) {
    if (each->now.load(std::memory_order_acquire) == done) tell(*each);
    if (each->now.load(std::memory_order_relaxed) != idle) continue;  // only this thread ends that state
    each->task = std::move(task);
    each->now.store(working, std::memory_order_release);  // with the task
    each->now.notify_one();
    return;
  }
  tell_(*task, spawn(task->request));
}

void start_crew::tell(helper& one) {
  const std::unique_ptr<start_task> task = std::move(one.task);
  const spawn_result result = one.result;
  one.pid.store(0, std::memory_order_relaxed);
  one.now.store(idle, std::memory_order_relaxed);  // the helper has nothing to read
  tell_(*task, result);
}

void start_crew::wait(helper& one) {
  while (one.now.load(std::memory_order_acquire) == working) one.now.wait(working);
  if (one.now.load(std::memory_order_relaxed) == done) tell(one);
}

void start_crew::collect() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
  for (const auto& each : helpers_)
    if (each->now.load(std::memory_order_acquire) == done) tell(*each);
}

void start_crew::settle() {
  for (const auto& each : helpers_) wait(*each);
}

void start_crew::settle(pid_t pid) {
  // The kernel has written the number before the process ran, and so before anybody could be told of its end.
  for (const auto& each : helpers_)
    if (each->pid.load(std::memory_order_relaxed) == pid) return wait(*each);
}

bool start_crew::busy() const {
  for (const auto& each : helpers_)
    if (each->now.load(std::memory_order_acquire) != idle) return true;
  return false;
}

}  // namespace verbena::launcher
