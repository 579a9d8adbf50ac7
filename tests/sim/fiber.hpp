// A fiber: a function with a stack of its own, which runs when it is resumed and until it pauses or returns. So the
// ranks of a simulated job can make blocking calls in one thread, in an order that the simulation decides. It must
// not know what runs in it.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace verbena::sim_tests {

class fiber {
 public:
  explicit fiber(std::function<void()> body);
  /// One that has not ended is left as it fell, like a process that was killed: its stack, with all that lies there,
  /// stays until the end of the test program.
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Runs it until its next pause or its end. Not from within a fiber.
  void resume();
  /// Back to whoever resumed the fiber that runs.
  static void pause() noexcept;

  bool ended() const noexcept { return ended_; }

 private:
  struct sanitizers {  ///< what they must be told
    void* fake_stack = nullptr;
    void* thread = nullptr;
    const void* home_bottom = nullptr;
    std::size_t home_size = 0;
  };
  struct exceptions {  ///< the runtime library's record of those under way (__cxa_eh_globals)
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  static void enter() noexcept;
  void leave(bool for_good) noexcept;

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t own_{};
  ucontext_t home_{};
  sanitizers sanitizers_;
  exceptions exceptions_;
  bool ended_ = false;
};

}  // namespace verbena::sim_tests
