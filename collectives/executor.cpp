#include "collectives/executor.hpp"

#include "base/check.hpp"
#include "collectives/communicator_state.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace verbena::collectives {

std::uint64_t grain_of(std::size_t element_bytes) noexcept {
  constexpr std::size_t longest = 4096;
  const std::uint64_t grain = line_bytes / std::gcd(line_bytes, element_bytes);
  return grain * element_bytes <= longest ? grain : 1;
}

segmentation segments_of(const work& call) noexcept {
  const std::uint64_t grain = grain_of(call.element_bytes);
  const std::uint64_t most = std::max(call.segment_bytes / call.element_bytes / grain * grain, grain);
  // An empty vector goes round once too: its messages say that everybody has come.
  if (call.count == 0) return {most, 1};
  const std::uint64_t repetitions = (call.count + most - 1) / most;
  // Equal segments rather than full ones and a crumb.
  const std::uint64_t each = (call.count + repetitions - 1) / repetitions;
  return {(each + grain - 1) / grain * grain, repetitions};
}

execution::execution(communicator_state& home, schedule list)
    : home_(home), list_(std::move(list)), watch_(home) {
  for (std::uint32_t i = 0; i < list_.steps.size(); ++i) {
    const bool message = is_started(list_.steps[i].what);
    operation_of_.push_back(message ? static_cast<std::uint32_t>(step_of_.size()) : no_step);
    if (message) step_of_.push_back(i);
  }
  operations_ = std::make_unique<runtime::operation[]>(step_of_.size());
  expected_ = std::make_unique<std::size_t[]>(step_of_.size());
}

execution::~execution() {
  if (linked()) unlink();
  if (ringing_) home_.node.head().bell_sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void execution::start(const work& call) {
  base::check(state_ == state::idle, "an execution is started while it runs");
  call_ = call;
  parts_ = segments_of(call);
  grain_ = grain_of(call.element_bytes);
  const std::uint64_t longest = std::min<std::uint64_t>(parts_.elements, call.count);
  cell_bytes_ = (list_.blocks ? longest : largest_chunk(longest, list_.chunks, grain_)) * call.element_bytes;
  if (const std::size_t needed = cell_bytes_ * list_.scratch_chunks; needed > scratch_bytes_) {
    scratch_.reset();
    scratch_bytes_ = 0;
    scratch_.reset(static_cast<std::byte*>(::operator new (needed, std::align_val_t{64})));
    scratch_bytes_ = needed;
  }
  if (list_.on_node)
    ticket_ = home_.tickets++;
  else
    label_ = tag{static_cast<std::int32_t>(home_.calls++ & 0x3fffffff)};
  has_turn_ = !list_.on_node;
  current_ = leading_ = 0;
  index_ = 0;
  in_lead_ = list_.ahead > 0;
  error_ = suspect_ = errc::success;
  culprit_ = -1;
  over_ = nullptr;
  unlike_ = {};
  watch_.begin(call_.number, call_.likeness);
  state_ = state::running;
}

void execution::run_as_task(ending over, void* argument) noexcept {
  over_ = over;
  over_argument_ = argument;
  home_.port.add_task(*this);
  // Whoever sleeps for this rank's requests sleeps on the doorbell, without having looked at the node block.
  if (list_.on_node) {
    ringing_ = true;
    home_.node.head().bell_sleepers.fetch_add(1, std::memory_order_seq_cst);  // before the looks of any wait
  }
  advance();
}

bool execution::take_turn() noexcept {
  if (has_turn_) return true;
  if (home_.block_lost != errc::success) {
    fail(home_.block_lost, home_.block_culprit);
    return false;
  }
  if (home_.serving != ticket_) {
    blocked_ = blocked::on_turn;
    return false;
  }
  has_turn_ = true;
  first_turn_ = home_.turns;
  first_progress_ = home_.progress;
  return true;
}

bool execution::advance() noexcept {
  if (state_ != state::running) return false;
  blocked_ = blocked::no;
  const bool moved = take_turn() && run_until_blocked();
  if (!moved && state_ == state::running && linked()) look_for_losses();
  return moved;
}

/// A task has no waiter that looks after the members: one that is blocked may be waiting for a member that
/// lives and has given up because another died.
void execution::look_for_losses() noexcept {
  if (const auto dead = home_.port.failed_member()) return fail(errc::peer_failed, dead->value);
  if (suspect_ != errc::success) {
    if (const auto gone = home_.port.departed_member()) return fail(errc::peer_left, gone->value);
    if (base::steady_now() > suspect_until_) return fail(suspect_, suspect_peer_);
  }
  if (const int other = watch_.look(announcement_watch::short_patience); other >= 0)
    return fail(errc::mismatch, other);
  if (blocked_ != blocked::on_progress && blocked_ != blocked::on_release) return;
  // Whoever has left in good order had finished this repetition, if it took part (node_wait.cpp). So one more
  // look.
  if (const auto gone = home_.port.departed_member())
    if (!run_until_blocked() && state_ == state::running) fail(errc::peer_left, gone->value);
}

/// The order is: lead of 0; then for each repetition the lead of the next one, its own rest, and what it
/// started.
bool execution::run_until_blocked() noexcept {
  const auto steps = static_cast<std::uint32_t>(list_.steps.size());
  bool moved = false;
  while (state_ == state::running) {
    if (in_lead_) {
      if (index_ < list_.ahead) {
        if (!perform(index_, leading_)) return moved;
        ++index_;
      } else {
        ++leading_;
        // The lead of 0 is followed by that of 1; every other one by the rest of the repetition before it.
        in_lead_ = leading_ == 1 && current_ == 0 && parts_.repetitions > 1;
        index_ = in_lead_ ? 0 : list_.ahead;
      }
    } else if (index_ < steps) {
      if (!perform(index_, current_)) return moved;
      ++index_;
    } else {
      if (!repetition_ended()) return moved;
      if (++current_ == parts_.repetitions) {
        finish();
        return true;
      }
      in_lead_ = list_.ahead > 0 && leading_ < parts_.repetitions;
      index_ = in_lead_ ? 0 : list_.ahead;
    }
    moved = true;
  }
  return true;
}

bool execution::op_ended(std::size_t index) noexcept {
  const runtime::operation& op = operations_[index];
  if (op.pending()) {
    blocked_ = blocked::on_message;
    waiting_for_ = static_cast<std::uint32_t>(index);
    return false;
  }
  if (!op.done()) return true;
  const step& one = list_.steps[step_of_[index]];
  if (const errc error = op.result.error; error != errc::success && error != errc::truncated) {
    // A peer that leaves may do so because somebody else has died: that is what to report.
    const auto dead = home_.port.failed_member();
    if (!dead && linked() && error != errc::peer_left && error != errc::peer_failed) {
      // It may also have given up after a death that we have not heard of yet (communicator_state::cause).
      if (suspect_ == errc::success) suspect_until_ = base::steady_now() + 200 * base::millisecond;
      suspect_ = error;
      suspect_peer_ = one.peer;
      blocked_ = blocked::on_message;
      waiting_for_ = static_cast<std::uint32_t>(index);
      return false;
    }
    fail(dead ? errc::peer_failed : error, dead ? dead->value : one.peer);
    return false;
  }
  // All members cut the vector in the same way, so a message of another length is another call, or another
  // count.
  const bool cut = op.result.error == errc::truncated;
  if (one.what == action::receive && (cut || op.result.bytes != expected_[index])) {
    unlike_ = {cut ? op.result.sent_bytes : op.result.bytes, expected_[index]};
    fail(errc::mismatch, one.peer);
    return false;
  }
  return true;
}

bool execution::started_ended(const step& one) noexcept {
  for (const std::uint32_t before : one.after)
    if (before != no_step && operation_of_[before] != no_step && !op_ended(operation_of_[before]))
      return false;
  return true;
}

bool execution::repetition_ended() noexcept {
  for (std::size_t i = 0; i < step_of_.size(); ++i)
    if (!op_ended(i)) return false;
  return true;
}

std::uint64_t execution::elements_in(std::uint64_t repetition) const noexcept {
  const std::uint64_t begin = repetition * parts_.elements;
  return begin >= call_.count ? 0 : std::min<std::uint64_t>(parts_.elements, call_.count - begin);
}

/// Within its buffer's part of the segment.
std::uint64_t execution::begin_of(std::uint32_t chunk, std::uint64_t elements) const noexcept {
  if (chunk == 0) return 0;
  if (list_.blocks) return chunk * elements;
  return chunk_begin(elements, list_.chunks, chunk, grain_);
}

std::byte* execution::address(const step& one, const piece& p, std::uint64_t repetition) const noexcept {
  if (one.chunks == 0) return nullptr;
  const std::uint64_t offset = begin_of(p.at, elements_in(repetition)) * call_.element_bytes;
  // In the caller's memory a block is whole, and its parts of other segments lie in between.
  const std::uint64_t segment =
      (repetition * parts_.elements + (list_.blocks ? p.at * call_.count : 0)) * call_.element_bytes +
      (list_.blocks ? 0 : offset);
  switch (p.where) {
    case place::input:
      return const_cast<std::byte*>(static_cast<const std::byte*>(call_.in)) + segment;
    case place::output:
      return static_cast<std::byte*>(call_.out) + segment;
    case place::scratch:
      return scratch_.get() + (list_.blocks ? offset : p.at * cell_bytes_);
    case place::node:
      return home_.node.slot(p.member, first_turn_ + repetition) + offset;
    case place::none:
      break;
  }
  return nullptr;
}

std::size_t execution::bytes_of(const step& one, std::uint64_t repetition) const noexcept {
  if (one.chunks == 0) return 0;
  const std::uint64_t in_segment = elements_in(repetition);
  return (begin_of(one.first + one.chunks, in_segment) - begin_of(one.first, in_segment)) *
         call_.element_bytes;
}

void execution::copy(const step& one, std::uint64_t repetition) noexcept {
  const auto move = [](std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
  };
  const bool apart = list_.blocks && one.chunks > 1 && parts_.repetitions > 1;
  if (!apart)
    return move(address(one, one.to, repetition), address(one, one.left, repetition),
                bytes_of(one, repetition));
  step block = one;
  block.chunks = 1;
  for (std::uint32_t i = 0; i < one.chunks; ++i, ++block.left.at, ++block.to.at)
    move(address(block, block.to, repetition), address(block, block.left, repetition),
         bytes_of(block, repetition));
}

/// Only in a call's first repetition: the others are as many and as long at all members if this one is.
bool execution::alike(int member, std::uint64_t repetition) noexcept {
  if (repetition != 0 || !home_.differs(member, call_.number, call_.likeness)) return true;
  fail(errc::mismatch, member);
  return false;
}

/// Performs or starts one step. False: it must wait, or the execution has failed.
bool execution::perform(std::uint32_t index, std::uint64_t repetition) noexcept {
  const step& one = list_.steps[index];
  if (!started_ended(one)) return false;
  const std::size_t bytes = bytes_of(one, repetition);
  switch (one.what) {
    case action::copy:
      copy(one, repetition);
      return true;
    case action::reduce:
      call_.reduce(address(one, one.to, repetition), address(one, one.left, repetition),
                   address(one, one.right, repetition), bytes / call_.element_bytes);
      return true;
    case action::send:
      home_.port.send(operations_[operation_of_[index]], address(one, one.left, repetition), bytes,
                      rank{one.peer}, label_);
      return true;
    case action::receive:
      expected_[operation_of_[index]] = bytes;
      home_.port.receive(operations_[operation_of_[index]], address(one, one.to, repetition), bytes,
                         rank{one.peer}, label_);
      return true;
    case action::publish:
      home_.node.member(home_.self).progress.store(++home_.progress, std::memory_order_release);
      home_.wait.wake_bells();
      return true;
    case action::await: {
      const std::uint64_t wanted = first_progress_ + repetition * list_.publishes + one.count;
      if (home_.node.member(one.peer).progress.load(std::memory_order_acquire) >= wanted)
        return alike(one.peer, repetition);
      blocked_ = blocked::on_progress;
      return false;
    }
    case action::arrive:
    case action::arrive_combine: {
      const std::uint64_t number = ++home_.gatherings;
      // Release: what this member wrote; acquire: what all that arrived before wrote, for the last one.
      const std::uint64_t before = home_.node.head().arrived.fetch_add(1, std::memory_order_acq_rel);
      if (before + 1 == number * static_cast<std::uint64_t>(home_.size)) {
        if (one.what == action::arrive_combine) combine(one, repetition);
        home_.wait.release(static_cast<std::uint32_t>(number));
      }
      return true;
    }
    case action::wait_release:
      if (home_.node.head().release.load(std::memory_order_acquire) ==
          static_cast<std::uint32_t>(home_.gatherings))
        return alike((home_.self + 1) % home_.size, repetition);
      blocked_ = blocked::on_release;
      return false;
    case action::put_with_flag:
    case action::wait_flag:
      break;
  }
  base::check(false, "a schedule puts over a port that has no puts");
  return false;
}

void execution::combine(const step& one, std::uint64_t repetition) noexcept {
  const std::uint64_t in_segment = elements_in(repetition);
  const std::uint64_t first = begin_of(one.first, in_segment);
  const std::size_t elements = begin_of(one.first + one.chunks, in_segment) - first;
  const auto operand = [&](int member) {
    return home_.node.slot(member, first_turn_ + repetition) + first * call_.element_bytes;
  };
  for (int member = 1; member < home_.size; ++member)
    call_.reduce(operand(0), operand(0), operand(member), elements);
}

void execution::wait() noexcept {
  if (state_ != state::running) return;
  bool well = true;
  int other = -1;
  const auto until = [&](auto&& ready) {
    auto look = [&]() noexcept {
      return ready() || (other = watch_.look(announcement_watch::short_patience)) >= 0;
    };
    return home_.wait_until(look);
  };
  switch (blocked_) {
    case blocked::no:
      break;
    case blocked::on_turn:
      well = until([&] { return home_.serving == ticket_ || home_.block_lost != errc::success; });
      break;
    case blocked::on_message:
      well = until([&] { return operations_[waiting_for_].done(); });
      break;
    case blocked::on_progress: {
      const std::uint64_t repetition = in_lead_ ? leading_ : current_;
      const step& one = list_.steps[index_];
      const std::uint64_t wanted = first_progress_ + repetition * list_.publishes + one.count;
      const auto& word = home_.node.member(one.peer).progress;
      well = home_.wait.until([&]() noexcept {
        return word.load(std::memory_order_acquire) >= wanted || (other = watch_.look(home_.patience())) >= 0;
      });
      break;
    }
    case blocked::on_release:
      well = home_.wait.until_released(static_cast<std::uint32_t>(home_.gatherings), [&]() noexcept {
        return (other = watch_.look(home_.patience())) >= 0;
      });
      break;
  }
  if (other >= 0) return fail(errc::mismatch, other);
  if (well) return;
  const auto [why, who] = home_.loss();
  fail(why, who);
}

void execution::finish() noexcept {
  if (list_.on_node) {
    home_.turns += parts_.repetitions;
    ++home_.serving;
  }
  state_ = state::idle;
  end_task();
}

void execution::fail(errc why, int who) noexcept {
  error_ = why;
  culprit_ = who;
  bool kept = false;
  for (std::size_t i = 0; i < step_of_.size(); ++i)
    kept |= operations_[i].pending() && !home_.port.withdraw(operations_[i]);
  if (list_.on_node && home_.block_lost == errc::success) {
    // The block is out of step with the others: nobody gets a turn any more.
    home_.block_lost = why;
    home_.block_culprit = who;
  }
  state_ = kept || list_.on_node ? state::lost : state::idle;
  home_.note_loss(why, who);
  end_task();
}

void execution::end_task() noexcept {
  if (linked()) unlink();
  if (std::exchange(ringing_, false)) home_.node.head().bell_sleepers.fetch_sub(1, std::memory_order_relaxed);
  if (over_ != nullptr) std::exchange(over_, nullptr)(over_argument_);
}

}  // namespace verbena::collectives
