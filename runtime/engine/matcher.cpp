#include "runtime/engine/matcher.hpp"

namespace verbena::runtime {
namespace {

constexpr int open = -1;

base::fifo_key key_of(const match_key& k) { return {k.context, k.source.value, k.label.value}; }

std::size_t shape_of(const match_key& k) { return (k.source == any_source ? 2u : 0u) + (k.label == any_tag ? 1u : 0u); }

}  // namespace

unexpected_message* matcher::peek_unexpected(const match_key& want) noexcept {
  if (exact_.empty()) return nullptr;
  base::keyed_fifo* const queues[4] = {&exact_, &by_source_, &by_tag_, &by_context_};
  return static_cast<unexpected_message*>(queues[shape_of(want)]->find(key_of(want)));
}

unexpected_message* matcher::take_unexpected(const match_key& want) noexcept {
  unexpected_message* found = peek_unexpected(want);
  if (found != nullptr) remove(*found);
  return found;
}

void matcher::post(posted_receive& receive, const match_key& want) {
  receive.want = want;
  receive.order = next_order_++;
  posted_.insert(receive.link, key_of(want), &receive);
  ++shapes_[shape_of(want)];
}

posted_receive* matcher::take_posted(const match_key& is) noexcept {
  if (posted_.empty()) return nullptr;
  if ((shapes_[1] | shapes_[2] | shapes_[3]) == 0) {  // no receive leaves anything open: windows of named ones
    auto* found = static_cast<posted_receive*>(posted_.find(key_of(is)));
    if (found == nullptr) return nullptr;
    --shapes_[0];
    posted_.remove(found->link);
    return found;
  }
  const base::fifo_key candidates[4] = {{is.context, is.source.value, is.label.value},
                                        {is.context, is.source.value, open},
                                        {is.context, open, is.label.value},
                                        {is.context, open, open}};
  posted_receive* oldest = nullptr;
  for (std::size_t shape = 0; shape < 4; ++shape) {
    if (shapes_[shape] == 0) continue;
    auto* found = static_cast<posted_receive*>(posted_.find(candidates[shape]));
    if (found != nullptr && (oldest == nullptr || found->order < oldest->order)) oldest = found;
  }
  if (oldest != nullptr) remove(*oldest);
  return oldest;
}

void matcher::add_unexpected(unexpected_message& message, const match_key& is) {
  message.is = is;
  message.order = next_message_++;
  exact_.insert(message.exact, {is.context, is.source.value, is.label.value}, &message);
  by_source_.insert(message.by_source, {is.context, is.source.value, open}, &message);
  by_tag_.insert(message.by_tag, {is.context, open, is.label.value}, &message);
  by_context_.insert(message.by_context, {is.context, open, open}, &message);
}

void matcher::remove(posted_receive& receive) noexcept {
  --shapes_[shape_of(receive.want)];
  posted_.remove(receive.link);
}

void matcher::remove(unexpected_message& message) noexcept {
  exact_.remove(message.exact);
  by_source_.remove(message.by_source);
  by_tag_.remove(message.by_tag);
  by_context_.remove(message.by_context);
}

}  // namespace verbena::runtime
