// Runs a schedule on real memory: one execution is one collective call in flight. Blocking callers alternate
// `advance` and `wait`; non-blocking ones link it as a task of the port; persistent ones start it again.
// After the first run it allocates only if a call needs more scratch than any before.
//
// An execution can be abandoned at every step: when a member dies, what is pending is withdrawn, and where
// that cannot be done, the execution keeps the operation (and is never used again) until the communicator
// goes.
#pragma once

#include "collectives/announcement.hpp"
#include "collectives/reduce_kernels.hpp"
#include "collectives/schedule.hpp"
#include "runtime/collective_port.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace verbena::collectives {

class communicator_state;

/// One call: the caller's buffers and what the elements are. `in` and `out` may be equal. For a schedule of
/// blocks `count` is the length of one block, and a buffer of several blocks holds them one behind the other.
struct work {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  std::size_t element_bytes = 1;
  combiner reduce{};
  std::size_t segment_bytes = 1;  ///< per repetition, at most (of one block)
  std::uint64_t number = 0;       ///< of the call, among all of the communicator
  std::uint64_t likeness = 0;     ///< what must be the same at all members (announcement.hpp)
};

/// For schedules without scratch: no segments.
inline constexpr std::size_t whole_vector = std::size_t{1} << 62;

/// How often a schedule is repeated for a call, and by how much each repetition moves on.
struct segmentation {
  std::uint64_t elements = 0;  ///< per segment; the last one is shorter
  std::uint64_t repetitions = 1;
};
segmentation segments_of(const work& call) noexcept;
/// The fewest elements that are whole cache lines; for elements so large that these would be many, one.
std::uint64_t grain_of(std::size_t element_bytes) noexcept;

class execution final : public runtime::progress_task {
 public:
  /// Called once when a call that runs as a task has ended, well or not; the last thing the execution does.
  using ending = void (*)(void* argument) noexcept;

  execution(communicator_state& home, schedule list);
  ~execution() override;

  /// Begins a call; not while one is running. May allocate scratch, and throw for want of it.
  void start(const work& call);
  /// Goes on as a task of the port: every progress advances it, and `over` is told when it has ended. May end
  /// at once.
  void run_as_task(ending over, void* argument) noexcept;
  /// Runs steps until one must wait. True if something moved.
  bool advance() noexcept override;
  /// Waits until `advance` can move again. Only for blocking callers; not from within `progress`.
  void wait() noexcept;

  bool done() const noexcept { return state_ != state::running; }
  bool usable() const noexcept { return state_ == state::idle && !claimed; }
  /// It keeps an operation that somebody may still use: it must live as long as the communicator.
  bool lost() const noexcept { return state_ == state::lost; }
  /// How it ended, and whose fault it is (-1: unknown).
  errc error() const noexcept { return error_; }
  int culprit() const noexcept { return culprit_; }
  /// Of errc::mismatch found by a message: its bytes, and those that were expected; both 0: found by
  /// announcements.
  struct lengths {
    std::uint64_t theirs = 0, ours = 0;
  };
  const lengths& unlike() const noexcept { return unlike_; }
  const work& call() const noexcept { return call_; }

  bool claimed = false;  ///< by a request that has not been waited for

 private:
  enum class state : std::uint8_t { idle, running, lost };
  enum class blocked : std::uint8_t { no, on_turn, on_message, on_progress, on_release };

  bool take_turn() noexcept;
  bool run_until_blocked() noexcept;
  bool started_ended(const step& one) noexcept;
  bool repetition_ended() noexcept;
  bool op_ended(std::size_t index) noexcept;
  bool perform(std::uint32_t index, std::uint64_t repetition) noexcept;
  void copy(const step& one, std::uint64_t repetition) noexcept;
  bool alike(int member, std::uint64_t repetition) noexcept;
  void look_for_losses() noexcept;
  std::size_t bytes_of(const step& one, std::uint64_t repetition) const noexcept;
  void combine(const step& one, std::uint64_t repetition) noexcept;
  std::byte* address(const step& one, const piece& p, std::uint64_t repetition) const noexcept;
  std::uint64_t elements_in(std::uint64_t repetition) const noexcept;
  std::uint64_t begin_of(std::uint32_t chunk, std::uint64_t elements) const noexcept;
  void finish() noexcept;
  void fail(errc why, int who) noexcept;
  void end_task() noexcept;

  communicator_state& home_;
  const schedule list_;
  std::vector<std::uint32_t> operation_of_;  ///< by step; no_step: none
  std::vector<std::uint32_t> step_of_;       ///< by operation
  std::unique_ptr<runtime::operation[]> operations_;
  std::unique_ptr<std::size_t[]> expected_;  ///< by operation: bytes a receive must bring
  struct aligned_delete {
    void operator()(std::byte* memory) const noexcept { ::operator delete (memory, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, aligned_delete> scratch_;
  std::size_t scratch_bytes_ = 0;

  // the call in flight
  work call_;
  segmentation parts_;
  std::uint64_t grain_ = 1;
  std::size_t cell_bytes_ = 0;
  state state_ = state::idle;
  blocked blocked_ = blocked::no;
  errc error_ = errc::success;
  int culprit_ = -1;
  tag label_{};
  // position: steps [0, ahead) of repetition `leading_`, or the rest of `current_`
  std::uint64_t current_ = 0;
  std::uint64_t leading_ = 0;
  std::uint32_t index_ = 0;
  bool in_lead_ = false;
  std::uint32_t waiting_for_ = 0;  ///< operation, if blocked on a message
  lengths unlike_;
  announcement_watch watch_;
  // as a task
  ending over_ = nullptr;
  void* over_argument_ = nullptr;
  bool ringing_ = false;          ///< counted among those to be woken by news in the node block
  errc suspect_ = errc::success;  ///< a message failed; the news of why may still come
  int suspect_peer_ = -1;
  base::nanoseconds suspect_until_ = 0;
  // the node block, while it is this execution's turn
  bool has_turn_ = false;
  std::uint64_t ticket_ = 0;
  std::uint64_t first_turn_ = 0;
  std::uint64_t first_progress_ = 0;
};

}  // namespace verbena::collectives
