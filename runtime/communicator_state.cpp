#include "runtime/communicator_state.hpp"

#include "runtime/context_state.hpp"
#include "runtime/request_access.hpp"

#include <algorithm>

namespace verbena::runtime {

communicator_state::communicator_state(context_state& host, std::uint32_t context, member_list members,
                                       std::uint32_t size, rank self_rank)
    : host_(host),
      context_(context),
      self_(self_rank),
      size_(size),
      members_(std::move(members)),
      table_(members_ == nullptr ? nullptr : members_->data()) {}

communicator_state::~communicator_state() {
  slot_.reset();  // it may hold operations, and looks at the block
  if (block_name_ != 0) host_.blocks().leave(block_name_);
  host_.engine().forget_context(context_);
  host_.engine().contexts().remove(context_table::slot_of(context_));
}

bool communicator_state::busy() noexcept {
  return holders_ != 0 || (slot_ != nullptr && slot_->busy()) || host_.engine().context_busy(context_) || host_.has_requests_of(*this);
}

bool communicator_state::contains(peer p) const noexcept {
  return table_ == nullptr ? p.index < size_ : std::find(table_, table_ + size_, p.index) != table_ + size_;
}

void communicator_state::close() noexcept {
  if (closed_ || askers_ != 0) return;
  closed_ = true;
  host_.engine().close_context(context_);
}

void communicator_state::remember(rank r) {
  last_record_ = &host_.engine().meet(peer_of(r));
  last_ = r;
}

const base::settings& communicator_state::settings() const noexcept { return host_.settings(); }

void communicator_state::send(operation& op, const void* data, std::size_t bytes, rank to, tag label) noexcept {
  host_.engine().send(op, {record_of(to), context_ | collective_bit, self_.value}, data, bytes, label);
}

void communicator_state::receive(operation& op, void* data, std::size_t bytes, rank from, tag label) noexcept {
  const peer source = peer_of(from);
  host_.engine().receive(op, &source, {context_ | collective_bit, from, label}, data, bytes);
}

bool communicator_state::withdraw(operation& op) noexcept { return host_.engine().cancel(op); }

bool communicator_state::progress() noexcept { return host_.progress(); }

bool communicator_state::wait_until(bool (*ready)(void*) noexcept, void* argument) noexcept {
  bool broken = false;
  host_.wait_for([&] {
    if (ready(argument)) return true;
    broken = failed_member().has_value();
    return broken;
  });
  return !broken;
}

void communicator_state::wake(rank member) noexcept { host_.wake(peer_of(member)); }

bool communicator_state::nothing_pending() const noexcept { return host_.engine().nothing_pending(); }

base::nanoseconds communicator_state::spin_budget() const noexcept { return host_.spin_budget(); }

std::optional<rank> communicator_state::failed_member() const noexcept { return member_lost(false); }

std::optional<rank> communicator_state::departed_member() const noexcept { return member_lost(true); }

std::optional<rank> communicator_state::member_lost(bool in_good_order) const noexcept {
  if (!host_.engine().any_peer_down()) return std::nullopt;
  for (int r = 0; r < size(); ++r) {
    const errc why = host_.engine().why_down(peer_of(rank{r}));
    if (why != errc::success && (why == errc::peer_left) == in_good_order) return rank{r};
  }
  return std::nullopt;
}

unsigned communicator_state::cores() const noexcept { return host_.cores(); }

gate& communicator_state::doors() noexcept { return host_.doors(); }

void communicator_state::add_task(progress_task& task) noexcept { host_.engine().add_task(task); }

request communicator_state::hand_out(pending_work& work) noexcept {
  work.host = &host_;
  return request_access::pending(work);
}

persistent_request communicator_state::hand_out_persistent(persistent_work& work) noexcept {
  work.host = &host_;
  return request_access::persistent(work);
}

}  // namespace verbena::runtime
