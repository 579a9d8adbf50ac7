// What a communicator is inside: its members, its two contexts (point to point, collective), and the port through which
// the collectives layer sees it. Owned by the context_state; handles point here.
#pragma once

#include "runtime/collective_port.hpp"
#include "runtime/engine/engine.hpp"

#include <verbena/communicator.hpp>

#include <memory>
#include <vector>

namespace verbena::runtime {

class context_state;

class communicator_state final : public collective_port {
 public:
  /// `members`: job rank of each rank of the communicator, in order; self_rank is our position.
  communicator_state(context_state& host, std::uint32_t context, std::vector<std::uint32_t> members, rank self_rank);

  context_state& host() const noexcept { return host_; }
  std::uint32_t context() const noexcept { return context_; }
  peer peer_of(rank r) const noexcept { return peer{members_[static_cast<std::size_t>(r.value)]}; }
  bool holds(rank r) const noexcept { return static_cast<std::uint32_t>(r.value) < size_; }
  /// The engine's record of a member; the last one asked for is at hand.
  engine_peer& record_of(rank r) {
    if (r != last_) [[unlikely]]
      remember(r);
    return *last_record_;
  }
  envelope_route way_to(rank to) { return {record_of(to), context_, self_.value}; }

  // collective_port
  rank self() const noexcept override { return self_; }
  int size() const noexcept override { return static_cast<int>(size_); }
  const base::settings& settings() const noexcept override;
  std::optional<node_block> block() const noexcept override { return block_; }
  void send(operation& op, const void* data, std::size_t bytes, rank to, tag label) noexcept override;
  void receive(operation& op, void* data, std::size_t bytes, rank from, tag label) noexcept override;
  bool withdraw(operation& op) noexcept override;
  bool progress() noexcept override;
  bool wait_until(bool (*ready)(void*) noexcept, void* argument) noexcept override;
  void wake(rank member) noexcept override;
  bool nothing_pending() const noexcept override;
  base::nanoseconds spin_budget() const noexcept override;
  std::optional<rank> failed_member() const noexcept override;
  std::optional<rank> departed_member() const noexcept override;
  void add_task(progress_task& task) noexcept override;
  request hand_out(pending_work& work) noexcept override;
  persistent_request hand_out_persistent(persistent_work& work) noexcept override;
  std::unique_ptr<extension>& slot() noexcept override { return slot_; }

  void set_block(node_block block) noexcept { block_ = block; }

 private:
  void remember(rank r);
  std::optional<rank> member_lost(bool in_good_order) const noexcept;

  context_state& host_;
  std::uint32_t context_;
  rank self_;
  std::uint32_t size_;
  rank last_{-1};
  engine_peer* last_record_ = nullptr;
  std::vector<std::uint32_t> members_;
  std::optional<node_block> block_;
  std::unique_ptr<extension> slot_;
};

}  // namespace verbena::runtime
