// A job without an engine: N ports over one shared block and one mailbox, for one thread each or all for one
// thread. Sends either end at once or only when they were received; a member can be declared dead.
#pragma once

#include "runtime/collective_port.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <verbena/collectives.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace verbena::collectives::test {

class fake_world;

class fake_port final : public runtime::collective_port {
 public:
  fake_port(fake_world& world, int self) : world_(world), self_(self) {}

  rank self() const noexcept override { return rank{self_}; }
  int size() const noexcept override;
  unsigned cores() const noexcept override { return 2; }
  const base::settings& settings() const noexcept override { return forced; }
  std::optional<runtime::node_block> block() const noexcept override;
  void send(runtime::operation& op, const void* data, std::size_t bytes, rank to,
            tag label) noexcept override;
  void receive(runtime::operation& op, void* data, std::size_t bytes, rank from, tag label) noexcept override;
  bool withdraw(runtime::operation& op) noexcept override;
  bool progress() noexcept override;
  bool wait_until(bool (*ready)(void*) noexcept, void* argument) noexcept override;
  void wake(rank) noexcept override {}
  bool nothing_pending() const noexcept override { return sends_.empty() && receives_.empty(); }
  base::nanoseconds spin_budget() const noexcept override { return 0; }
  std::optional<rank> failed_member() const noexcept override;
  runtime::gate& doors() noexcept override { return doors_; }
  void add_task(runtime::progress_task& task) noexcept override { tasks_.push_back(task); }
  // Handles belong to real contexts; here executions are driven directly.
  request hand_out(runtime::pending_work&) noexcept override { return {}; }
  persistent_request hand_out_persistent(runtime::persistent_work&) noexcept override { return {}; }
  std::unique_ptr<runtime::extension>& slot() noexcept override { return slot_; }

  base::settings forced;
  std::uint64_t sent = 0;
  std::atomic<std::uint64_t> ticks{0};

 private:
  struct pending_send {
    runtime::operation* op;
    std::shared_ptr<std::atomic<bool>> taken;
  };
  struct pending_receive {
    runtime::operation* op;
    std::byte* data;
    std::size_t bytes;
    int from;
    std::int32_t label;
  };
  fake_world& world_;
  int self_;
  std::list<pending_send> sends_;
  std::list<pending_receive> receives_;
  base::intrusive_list<runtime::progress_task> tasks_;
  runtime::gate doors_;
  std::unique_ptr<runtime::extension> slot_;
};

class fake_world {
 public:
  struct options {
    bool block = true;
    bool rendezvous = false;  ///< sends end only when they were received
  };
  explicit fake_world(int size) : fake_world(size, options{}) {}
  fake_world(int size, options how)
      : options_(how), bytes_(4096 + static_cast<std::size_t>(size) * (1 << 20)) {
    block_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (int r = 0; r < size; ++r) ports.push_back(std::make_unique<fake_port>(*this, r));
  }
  ~fake_world() {
    ports.clear();
    ::munmap(block_, bytes_);
  }
  fake_world(const fake_world&) = delete;
  fake_world& operator=(const fake_world&) = delete;

  void force(const char* allreduce, const char* barrier = "auto") {
    for (auto& port : ports) {
      port->forced.allreduce = allreduce;
      port->forced.barrier = barrier;
    }
  }
  void kill(int member) { dead_.store(member); }

  /// One thread per rank; returns when all have returned.
  void run(const std::function<void(fake_port&)>& program) {
    std::vector<std::thread> threads;
    for (auto& port : ports) threads.emplace_back([&program, &port] { program(*port); });
    for (std::thread& one : threads) one.join();
  }

  std::vector<std::unique_ptr<fake_port>> ports;

 private:
  friend class fake_port;
  struct message {
    std::vector<std::byte> data;
    std::shared_ptr<std::atomic<bool>> taken;
  };
  options options_;
  std::size_t bytes_;
  std::byte* block_;
  std::mutex lock_;
  std::map<std::tuple<int, int, std::int32_t>, std::deque<message>> mail_;  // from, to, label
  std::atomic<int> dead_{-1};
};

inline int fake_port::size() const noexcept {
  return static_cast<int>(world_.ports.size());
}

inline std::optional<runtime::node_block> fake_port::block() const noexcept {
  if (!world_.options_.block) return std::nullopt;
  return runtime::node_block{world_.block_, world_.bytes_};
}

inline std::optional<rank> fake_port::failed_member() const noexcept {
  const int dead = world_.dead_.load();
  return dead < 0 ? std::nullopt : std::optional<rank>(rank{dead});
}

inline void fake_port::send(runtime::operation& op, const void* data, std::size_t bytes, rank to,
                            tag label) noexcept {
  op.start();
  ++sent;
  fake_world::message one;
  if (bytes > 0)
    one.data.assign(static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + bytes);
  one.taken = std::make_shared<std::atomic<bool>>(false);
  if (world_.options_.rendezvous) sends_.push_back({&op, one.taken});
  {
    const std::lock_guard guard(world_.lock_);
    world_.mail_[{self_, to.value, label.value}].push_back(std::move(one));
  }
  if (!world_.options_.rendezvous) op.complete();
}

inline void fake_port::receive(runtime::operation& op, void* data, std::size_t bytes, rank from,
                               tag label) noexcept {
  op.start();
  receives_.push_back({&op, static_cast<std::byte*>(data), bytes, from.value, label.value});
}

inline bool fake_port::withdraw(runtime::operation& op) noexcept {
  sends_.remove_if([&](const pending_send& one) { return one.op == &op; });
  receives_.remove_if([&](const pending_receive& one) { return one.op == &op; });
  op.complete(errc::cancelled);
  return true;
}

inline bool fake_port::progress() noexcept {
  bool moved = false;
  ticks.fetch_add(1, std::memory_order_relaxed);
  std::set<std::pair<int, std::int32_t>> passed;  // a message that comes meanwhile is for the first receive
  for (auto at = receives_.begin(); at != receives_.end();) {
    fake_world::message one;
    if (passed.count({at->from, at->label}) != 0) {
      ++at;
      continue;
    }
    {
      const std::lock_guard guard(world_.lock_);
      auto& queue = world_.mail_[{at->from, self_, at->label}];
      if (queue.empty()) {
        passed.emplace(at->from, at->label);
        ++at;
        continue;
      }
      one = std::move(queue.front());
      queue.pop_front();
    }
    one.taken->store(true);
    if (!one.data.empty()) std::memcpy(at->data, one.data.data(), std::min(one.data.size(), at->bytes));
    runtime::operation& op = *at->op;
    op.result.bytes = std::min(one.data.size(), at->bytes);
    op.result.sent_bytes = one.data.size();
    const bool fits = one.data.size() <= at->bytes;
    at = receives_.erase(at);
    op.complete(fits ? errc::success : errc::truncated);
    moved = true;
  }
  for (auto at = sends_.begin(); at != sends_.end();) {
    if (!at->taken->load()) {
      ++at;
      continue;
    }
    runtime::operation& op = *at->op;
    at = sends_.erase(at);
    op.complete();
    moved = true;
  }
  tasks_.for_each([&](runtime::progress_task& task) { moved |= task.advance(); });
  return moved;
}

inline bool fake_port::wait_until(bool (*ready)(void*) noexcept, void* argument) noexcept {
  while (!ready(argument)) {
    if (failed_member()) return false;
    if (!progress()) ::sched_yield();
  }
  return true;
}

}  // namespace verbena::collectives::test
