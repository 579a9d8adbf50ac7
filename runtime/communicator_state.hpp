// What a communicator is inside: its members, its two contexts (point to point, collective), and the port through which
// the collectives layer sees it. Owned by the context_state; handles point here. A communicator that was freed stays until
// the last operation on it has ended (context_state::retire).
#pragma once

#include "runtime/collective_port.hpp"
#include "runtime/engine/engine.hpp"

#include <verbena/owned_communicator.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::runtime {

class context_state;

/// Job rank of each rank of a communicator, in order; shared by communicators of the same ranks. Null: they are the same.
using member_list = std::shared_ptr<const std::vector<std::uint32_t>>;

class communicator_state final : public collective_port {
 public:
  /// `context`: a live one of the engine; self_rank is our position.
  communicator_state(context_state& host, std::uint32_t context, member_list members, std::uint32_t size,
                     rank self_rank);
  ~communicator_state();

  context_state& host() const noexcept { return host_; }
  std::uint32_t context() const noexcept { return context_; }
  peer peer_of(rank r) const noexcept {
    const auto index = static_cast<std::uint32_t>(r.value);
    return peer{table_ == nullptr ? index : table_[index]};
  }
  const member_list& members() const noexcept { return members_; }
  bool holds(rank r) const noexcept { return static_cast<std::uint32_t>(r.value) < size_; }
  bool contains(peer p) const noexcept;
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
  unsigned cores() const noexcept override;
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
  gate& doors() noexcept override;
  void add_task(progress_task& task) noexcept override;
  request hand_out(pending_work& work) noexcept override;
  persistent_request hand_out_persistent(persistent_work& work) noexcept override;
  std::unique_ptr<extension>& slot() noexcept override { return slot_; }

  void set_block(node_block block) noexcept { block_ = block; }
  /// A block of shared_blocks, to be left when this goes.
  void set_block(node_block block, std::uint64_t name) noexcept {
    block_ = block;
    block_name_ = name;
  }

  std::string_view name() const noexcept override { return name_; }
  void set_name(std::string_view name) { name_ = name; }
  /// For errors: " of 'name'", or nothing.
  std::string of_name() const { return name_.empty() ? std::string{} : " of '" + name_ + "'"; }

  void set_attribute(const std::shared_ptr<const attribute_key::hooks>& key, void* value);
  void* attribute(const attribute_key::hooks* key) const noexcept;
  void erase_attribute(const attribute_key::hooks* key) noexcept;
  /// May throw what a copy hook throws.
  void copy_attributes_from(communicator_state& original);
  void free_attributes() noexcept;  ///< the last one set goes first

  /// Keeps it after it was freed for who comes back to it: a persistent request, a message that was matched and not
  /// received.
  void hold() noexcept { ++holders_; }
  void let_go() noexcept { --holders_; }
  /// A persistent receive can be started, even after it was freed: the messages stay.
  void may_ask() noexcept { ++askers_; }
  void asks_no_more() noexcept { --askers_; }
  /// True while something that was started on it has not ended.
  bool busy() noexcept;
  /// It was freed: takes no more messages than were asked for, unless a persistent receive may still ask.
  void close() noexcept;

 private:
  void remember(rank r);
  std::optional<rank> member_lost(bool in_good_order) const noexcept;

  context_state& host_;
  std::uint32_t context_;
  rank self_;
  std::uint32_t size_;
  rank last_{-1};
  engine_peer* last_record_ = nullptr;
  member_list members_;
  const std::uint32_t* table_;  ///< what is in members_
  std::optional<node_block> block_;
  std::uint64_t block_name_ = 0;
  std::uint32_t holders_ = 0;
  std::uint32_t askers_ = 0;
  bool closed_ = false;
  std::string name_;
  struct attribute_value {
    std::shared_ptr<const attribute_key::hooks> key;
    void* value;
  };
  std::vector<attribute_value> attributes_;
  std::unique_ptr<extension> slot_;
};

/// How the runtime gets from handles to what they name, and back.
class communicator_access {
 public:
  static communicator_state& state(communicator of) noexcept { return *of.state_; }
  static communicator handle(communicator_state& of) noexcept { return communicator{&of}; }
  static owned_communicator own(communicator_state& of) noexcept { return owned_communicator{&of}; }
};

}  // namespace verbena::runtime
