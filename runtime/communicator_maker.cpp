#include "runtime/communicator_maker.hpp"

#include "runtime/context_state.hpp"

#include <algorithm>

namespace verbena::runtime {

static_assert(communicator_maker::slot_limit == context_table::slots);

communicator_maker::communicator_maker(communicator parent) noexcept
    : parent_(communicator_access::state(parent)) {
  parent_.host().reap();
}

communicator_maker::~communicator_maker() {
  if (held_ != 0) let_go();
  if (block_ != 0 && !told_) parent_.host().blocks().take_back(block_);
}

std::uint32_t communicator_maker::lowest_free(std::uint32_t at_least) const noexcept {
  return parent_.host().engine().contexts().lowest_free(at_least);
}

bool communicator_maker::hold(std::uint32_t slot) {
  if (!parent_.host().engine().contexts().hold(slot)) return false;
  held_ = slot;
  return true;
}

std::uint64_t communicator_maker::generation() const noexcept {
  return parent_.host().engine().contexts().generation(held_);
}

void communicator_maker::let_go() noexcept {
  if (held_ != 0) parent_.host().engine().drop_context(held_);
  held_ = 0;
}

int communicator_maker::node() const noexcept {
  return static_cast<int>(parent_.host().job().local_ranks.front());
}

bool communicator_maker::on_this_node(std::span<const int> ranks) const noexcept {
  const auto& local = parent_.host().job().local_ranks;
  return std::all_of(ranks.begin(), ranks.end(), [&](int r) {
    return std::binary_search(local.begin(), local.end(), parent_.peer_of(rank{r}).index);
  });
}

std::uint64_t communicator_maker::take_block(std::size_t members, std::size_t head_bytes,
                                             std::size_t member_bytes, std::size_t least_bytes) {
  if (block_ == 0)
    block_ = parent_.host().blocks().take(static_cast<std::uint32_t>(members), head_bytes, member_bytes,
                                          least_bytes);
  return block_;
}

owned_communicator communicator_maker::make(std::uint64_t generation, std::span<const int> ranks,
                                            std::uint64_t block) {
  member_list members = parent_.members();
  auto size = static_cast<std::uint32_t>(parent_.size());
  rank self = parent_.self();
  if (!ranks.empty()) {
    std::vector<std::uint32_t> jobs;
    jobs.reserve(ranks.size());
    for (const int r : ranks) jobs.push_back(parent_.peer_of(rank{r}).index);
    self = rank{std::find(ranks.begin(), ranks.end(), self.value) - ranks.begin()};
    size = static_cast<std::uint32_t>(jobs.size());
    members = std::make_shared<const std::vector<std::uint32_t>>(std::move(jobs));
  }
  context_state& host = parent_.host();
  const std::uint32_t context = host.engine().install_context(std::exchange(held_, 0), generation);
  communicator_state& made =
      host.adopt(std::make_unique<communicator_state>(host, context, std::move(members), size, self));
  if (block != 0) made.set_block(host.blocks().find(block), block);
  block_ = 0;
  return communicator_access::own(made);
}

void communicator_maker::copy_attributes(communicator to) const {
  communicator_access::state(to).copy_attributes_from(parent_);
}

}  // namespace verbena::runtime
