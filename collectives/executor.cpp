#include "collectives/executor.hpp"

#include "base/check.hpp"
#include "collectives/communicator_state.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::collectives {

segmentation segments_of(const work& call) noexcept {
  const std::uint64_t grain = line_bytes / call.element_bytes;
  const std::uint64_t most = std::max(call.segment_bytes / call.element_bytes / grain * grain, grain);
  // An empty vector goes round once too: its messages say that everybody has come.
  if (call.count == 0) return {most, 1};
  const std::uint64_t repetitions = (call.count + most - 1) / most;
  // Equal segments rather than full ones and a crumb.
  const std::uint64_t each = (call.count + repetitions - 1) / repetitions;
  return {(each + grain - 1) / grain * grain, repetitions};
}

execution::execution(communicator_state& home, schedule list) : home_(home), list_(std::move(list)) {
  for (std::uint32_t i = 0; i < list_.steps.size(); ++i) {
    const bool message = is_started(list_.steps[i].what);
    operation_of_.push_back(message ? static_cast<std::uint32_t>(step_of_.size()) : no_step);
    if (message) step_of_.push_back(i);
  }
  operations_ = std::make_unique<runtime::operation[]>(step_of_.size());
}

execution::~execution() {
  if (linked()) unlink();
}

void execution::start(const work& call) {
  base::check(state_ == state::idle, "an execution is started while it runs");
  call_ = call;
  parts_ = segments_of(call);
  grain_ = line_bytes / call.element_bytes;
  cell_bytes_ = largest_chunk(std::min<std::uint64_t>(parts_.elements, call.count), list_.chunks, grain_) *
                call.element_bytes;
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
  error_ = errc::success;
  culprit_ = -1;
  state_ = state::running;
}

bool execution::take_turn() noexcept {
  if (has_turn_) return true;
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
  // A task has no waiter that looks after the members: one that is blocked may be waiting for a member that lives and
  // has given up because another died.
  if (!moved && state_ == state::running && linked())
    if (const auto dead = home_.port.failed_member()) fail(errc::peer_failed, dead->value);
  return moved;
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
  if (op.done() && op.result.error != errc::success) {
    // A peer that leaves may do so because somebody else has died: that is what to report.
    const auto dead = home_.port.failed_member();
    fail(dead ? errc::peer_failed : op.result.error, dead ? dead->value : list_.steps[step_of_[index]].peer);
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

std::uint64_t execution::begin_of(std::uint32_t chunk, std::uint64_t elements) const noexcept {
  if (chunk == 0) return 0;
  return chunk_begin(elements, list_.chunks, chunk, grain_);
}

std::byte* execution::address(const step& one, const piece& p, std::uint64_t repetition) const noexcept {
  if (one.chunks == 0) return nullptr;
  const std::uint64_t offset = begin_of(p.at, elements_in(repetition)) * call_.element_bytes;
  const std::uint64_t segment = repetition * parts_.elements * call_.element_bytes;
  switch (p.where) {
    case place::input:
      return const_cast<std::byte*>(static_cast<const std::byte*>(call_.in)) + segment + offset;
    case place::output:
      return static_cast<std::byte*>(call_.out) + segment + offset;
    case place::scratch:
      return scratch_.get() + p.at * cell_bytes_;
    case place::node:
      return home_.node.slot(p.member, first_turn_ + repetition) + offset;
    case place::none:
      break;
  }
  return nullptr;
}

/// Performs or starts one step. False: it must wait, or the execution has failed.
bool execution::perform(std::uint32_t index, std::uint64_t repetition) noexcept {
  const step& one = list_.steps[index];
  if (!started_ended(one)) return false;
  const std::uint64_t in_segment = elements_in(repetition);
  const std::size_t elements =
      one.chunks == 0 ? 0 : begin_of(one.first + one.chunks, in_segment) - begin_of(one.first, in_segment);
  const std::size_t bytes = elements * call_.element_bytes;
  switch (one.what) {
    case action::copy:
      if (const std::byte* from = address(one, one.left, repetition); bytes != 0)
        if (std::byte* to = address(one, one.to, repetition); to != from) std::memcpy(to, from, bytes);
      return true;
    case action::reduce:
      call_.reduce(address(one, one.to, repetition), address(one, one.left, repetition),
                   address(one, one.right, repetition), elements);
      return true;
    case action::send:
      home_.port.send(operations_[operation_of_[index]], address(one, one.left, repetition), bytes,
                      rank{one.peer}, label_);
      return true;
    case action::receive:
      home_.port.receive(operations_[operation_of_[index]], address(one, one.to, repetition), bytes,
                         rank{one.peer}, label_);
      return true;
    case action::publish:
      home_.node.member(home_.self).progress.store(++home_.progress, std::memory_order_release);
      home_.wait.wake_bells();
      return true;
    case action::await: {
      const std::uint64_t wanted = first_progress_ + repetition * list_.publishes + one.count;
      if (home_.node.member(one.peer).progress.load(std::memory_order_acquire) >= wanted) return true;
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
        return true;
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
  switch (blocked_) {
    case blocked::no:
      break;
    case blocked::on_turn:
      well = home_.port.wait_until(
          [](void* self) noexcept {
            const auto& me = *static_cast<execution*>(self);
            return me.home_.serving == me.ticket_;
          },
          this);
      break;
    case blocked::on_message:
      home_.port.wait(operations_[waiting_for_]);
      well = operations_[waiting_for_].done();
      break;
    case blocked::on_progress: {
      const std::uint64_t repetition = in_lead_ ? leading_ : current_;
      const step& one = list_.steps[index_];
      const std::uint64_t wanted = first_progress_ + repetition * list_.publishes + one.count;
      const auto& word = home_.node.member(one.peer).progress;
      well = home_.wait.until([&]() noexcept { return word.load(std::memory_order_acquire) >= wanted; });
      break;
    }
    case blocked::on_release:
      well = home_.wait.until_released(static_cast<std::uint32_t>(home_.gatherings));
      break;
  }
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
  if (linked()) unlink();
}

void execution::fail(errc why, int who) noexcept {
  error_ = why;
  culprit_ = who;
  bool kept = false;
  for (std::size_t i = 0; i < step_of_.size(); ++i)
    kept |= operations_[i].pending() && !home_.port.withdraw(operations_[i]);
  // The block is out of step with the others: nobody gets a turn any more.
  state_ = kept || list_.on_node ? state::lost : state::idle;
  if (linked()) unlink();
}

}  // namespace verbena::collectives
