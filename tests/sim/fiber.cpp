#include "tests/sim/fiber.hpp"

#include "base/check.hpp"

#include <cxxabi.h>

#include <cstring>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define VERBENA_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VERBENA_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(VERBENA_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace verbena::sim_tests {
namespace {

constexpr std::size_t stack_bytes = 256 << 10;

fiber* running = nullptr;
#if defined(__SANITIZE_THREAD__)
void* main_thread = nullptr;
#endif

/// Stacks that are free again, and those that somebody fell on: reachable, so that nothing on them counts as lost.
struct stacks {
  std::vector<std::unique_ptr<std::byte[]>> free, fallen;
};
stacks& all_stacks() {
  static stacks all;
  return all;
}

std::unique_ptr<std::byte[]> take_stack() {
  auto& free = all_stacks().free;
  if (free.empty()) return std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
  std::unique_ptr<std::byte[]> taken = std::move(free.back());
  free.pop_back();
#if defined(VERBENA_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(taken.get(), stack_bytes);
#endif
  return taken;
}

}  // namespace

fiber::fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  base::check(::getcontext(&own_) == 0, "fiber: no context");
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  ::makecontext(&own_, &fiber::enter, 0);
#if defined(__SANITIZE_THREAD__)
  sanitizers_.thread = __tsan_create_fiber(0);
#endif
}

fiber::~fiber() {
  base::check(running == nullptr, "fiber: ends while one runs");
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizers_.thread);
#endif
  (ended_ ? all_stacks().free : all_stacks().fallen).push_back(std::move(stack_));
}

void fiber::resume() {
  base::check(running == nullptr && !ended_, "fiber: resumed out of turn");
  running = this;
  auto* const record = reinterpret_cast<exceptions*>(abi::__cxa_get_globals());
  const exceptions ours = std::exchange(*record, exceptions_);
#if defined(VERBENA_ADDRESS_SANITIZER)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_.get(), stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  main_thread = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizers_.thread, 0);
#endif
  ::swapcontext(&home_, &own_);
#if defined(VERBENA_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  exceptions_ = std::exchange(*record, ours);
  running = nullptr;
}

void fiber::leave(bool for_good) noexcept {
#if defined(VERBENA_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &sanitizers_.fake_stack, sanitizers_.home_bottom,
                                 sanitizers_.home_size);
#else
  static_cast<void>(for_good);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(main_thread, 0);
#endif
  ::swapcontext(&own_, &home_);
#if defined(VERBENA_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(sanitizers_.fake_stack, &sanitizers_.home_bottom, &sanitizers_.home_size);
#endif
}

void fiber::pause() noexcept {
  running->leave(false);
}

void fiber::enter() noexcept {
  fiber& self = *running;
#if defined(VERBENA_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &self.sanitizers_.home_bottom, &self.sanitizers_.home_size);
#endif
  self.body_();
  self.ended_ = true;
  self.leave(true);
}

}  // namespace verbena::sim_tests
