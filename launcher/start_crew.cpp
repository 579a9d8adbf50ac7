#include "launcher/start_crew.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>

namespace verbena::launcher {

start_crew::start_crew(unsigned helpers, on_result tell)
    : tell_(std::move(tell)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) return;
  try {
    for (unsigned i = 0; i < helpers; ++i) {
      auto one = std::make_unique<helper>();
      std::thread([this, self = one.get()] { help(*self); }).detach();
      const std::lock_guard lock{mutex_};
      helpers_.push_back(std::move(one));
    }
  } catch (const std::system_error&) {  // the user may have no more threads: it is done with fewer
  }
}

void start_crew::help(helper& self) {
  while (true) {
    {
      std::unique_lock lock{mutex_};
      news_.wait(lock, [this] { return !queued_.empty(); });
      self.task = std::move(queued_.front());
      queued_.pop_front();
    }
    const spawn_result result = spawn(self.task->request, &self.pid);
    {
      const std::lock_guard lock{mutex_};
      finished_.emplace_back(std::move(self.task), result);
      self.pid.store(0, std::memory_order_relaxed);
    }
    news_.notify_all();
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  }
}

void start_crew::start(std::unique_ptr<start_task> task) {
  if (helpers_.empty()) return tell_(*task, spawn(task->request));
  {
    const std::lock_guard lock{mutex_};
    queued_.push_back(std::move(task));
  }
  news_.notify_one();
}

void start_crew::drop() {
  std::deque<std::unique_ptr<start_task>> dropped;
  const std::lock_guard lock{mutex_};
  dropped.swap(queued_);
}

void start_crew::collect() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
  std::vector<std::pair<std::unique_ptr<start_task>, spawn_result>> finished;
  {
    const std::lock_guard lock{mutex_};
    finished.swap(finished_);
  }
  for (const auto& [task, result] : finished) tell_(*task, result);
}

void start_crew::each_untold(const std::function<void(start_task&)>& visit) {
  const std::lock_guard lock{mutex_};
  for (const auto& each : queued_) visit(*each);
  for (const auto& each : helpers_)
    if (each->task) visit(*each->task);
  for (const auto& [task, result] : finished_) visit(*task);
}

void start_crew::settle(pid_t pid) {
  {
    // The kernel has written the number before the process ran, and so before anybody could be told of its end.
    std::unique_lock lock{mutex_};
    news_.wait(lock, [this, pid] {
      return std::none_of(helpers_.begin(), helpers_.end(),
                          [pid](const auto& h) { return h->pid.load(std::memory_order_relaxed) == pid; });
    });
  }
  collect();
}

bool start_crew::busy() const {
  const std::lock_guard lock{mutex_};
  return !queued_.empty() || !finished_.empty() ||
         std::any_of(helpers_.begin(), helpers_.end(), [](const auto& h) { return h->task != nullptr; });
}

}  // namespace verbena::launcher
