// The verbs fabric of a build without libibverbs: it says so, and leads nowhere.
#include "transport/verbs/verbs_fabric.hpp"

namespace verbena::transport::verbs {

class endpoint {};
void region::deregister() noexcept {}

verbs_fabric::verbs_fabric(peer, std::uint32_t, const base::job_page*, options)
    : why_("this build has no verbs (libibverbs was not there, or -Dverbs=disabled)") {}
verbs_fabric::~verbs_fabric() = default;
std::span<const std::byte> verbs_fabric::address() const noexcept {
  return absence_;
}
bool verbs_fabric::attach(peer, std::span<const std::byte>) {
  return false;
}
std::string verbs_fabric::explain(peer) const {
  return "verbs: " + why_;
}
std::string verbs_fabric::last_words(peer) const {
  return {};
}
peer_limits verbs_fabric::limits(peer) const noexcept {
  return {};
}
region verbs_fabric::register_memory(buffer) {
  return {};
}
region verbs_fabric::register_for_transfer(buffer) {
  return {};
}
void verbs_fabric::vouch(buffer) noexcept {}
void verbs_fabric::forget(const std::byte*) noexcept {}
region_counts verbs_fabric::registration_counts() const noexcept {
  return {};
}
bool verbs_fabric::arm() {
  return true;
}
void verbs_fabric::die() noexcept {}
std::byte* verbs_fabric::prepare(peer, std::size_t, post_result& result) noexcept {
  result = post_result::down;
  return nullptr;
}
void verbs_fabric::commit(envelope) noexcept {}
post_result verbs_fabric::start(peer, access_kind, buffer, const remote_key&, std::uint64_t, std::uint64_t,
                                std::uint64_t, operation&) {
  return post_result::down;
}
std::span<const arrival> verbs_fabric::gather(base::nanoseconds, const peer*, std::size_t&) {
  return {};
}
void verbs_fabric::release() noexcept {}

}  // namespace verbena::transport::verbs
