#include "transport/verbs/verbs_fabric.hpp"

#include "transport/verbs/endpoint.hpp"

#include <verbena/error.hpp>

namespace verbena::transport::verbs {

verbs_fabric::verbs_fabric(peer self, std::uint32_t job_size, const base::job_page* page, options how) {
  try {
    end_ = std::make_unique<endpoint>(self, job_size, page, std::move(how));
  } catch (const error& e) {
    why_ = e.what();
    absence_ = encode_absence(why_);
  }
}

verbs_fabric::~verbs_fabric() = default;

std::span<const std::byte> verbs_fabric::address() const noexcept {
  return end_ ? end_->address() : std::span<const std::byte>(absence_);
}
bool verbs_fabric::attach(peer to, std::span<const std::byte> address) {
  return end_ && end_->attach(to, address);
}
std::string verbs_fabric::explain(peer to) const {
  return end_ ? end_->explain(to) : "verbs: " + why_;
}
std::string verbs_fabric::last_words(peer to) const {
  return end_ ? end_->last_words(to) : std::string{};
}
peer_limits verbs_fabric::limits(peer to) const noexcept {
  return end_ ? end_->limits(to) : peer_limits{};
}
region verbs_fabric::register_memory(buffer local) {
  return end_ ? end_->register_memory(local) : region{};
}
region verbs_fabric::register_for_transfer(buffer local) {
  return end_ ? end_->register_for_transfer(local) : region{};
}
void verbs_fabric::vouch(buffer block) noexcept {
  if (end_) end_->vouch(block);
}
void verbs_fabric::forget(const std::byte* block) noexcept {
  if (end_) end_->forget(block);
}
region_counts verbs_fabric::registration_counts() const noexcept {
  return end_ ? end_->registration_counts() : region_counts{};
}
bool verbs_fabric::arm() {
  return !end_ || end_->arm();
}
void verbs_fabric::die() noexcept {
  if (end_) end_->die();
}

std::byte* verbs_fabric::prepare(peer to, std::size_t size, post_result& result) noexcept {
  if (end_) return end_->prepare(to, size, result);
  result = post_result::down;
  return nullptr;
}
void verbs_fabric::commit(envelope head) noexcept {
  end_->commit(head);
}
post_result verbs_fabric::start(peer to, access_kind what, buffer local, const remote_key& key,
                                std::uint64_t offset, std::uint64_t first, std::uint64_t second,
                                operation& op) {
  return end_ ? end_->start(to, what, local, key, offset, first, second, op) : post_result::down;
}
std::span<const arrival> verbs_fabric::gather(base::nanoseconds now, const peer* only, std::size_t& steps) {
  return end_ ? end_->gather(now, only, steps) : std::span<const arrival>{};
}
void verbs_fabric::release() noexcept {
  if (end_) end_->release();
}

}  // namespace verbena::transport::verbs
