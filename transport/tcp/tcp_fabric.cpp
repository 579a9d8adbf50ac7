#include "transport/tcp/tcp_fabric.hpp"

#include <verbena/error.hpp>

namespace verbena::transport::tcp {

tcp_fabric::tcp_fabric(peer self, std::uint32_t job_size, const base::job_page* page, options how) {
  try {
    end_ = std::make_unique<endpoint>(self, job_size, page, std::move(how));
  } catch (const error& e) {
    why_ = e.what();
    contact nowhere;
    nowhere.why = why_;
    absence_ = encode(nowhere);
  }
}

tcp_fabric::~tcp_fabric() = default;

std::span<const std::byte> tcp_fabric::address() const noexcept {
  return end_ ? end_->address() : std::span<const std::byte>(absence_);
}
void tcp_fabric::trust(const secret& key, std::string job) {
  if (end_) end_->trust(key, std::move(job));
}
bool tcp_fabric::attach(peer to, std::span<const std::byte> address) {
  return end_ && end_->attach(to, address);
}
std::string tcp_fabric::explain(peer to) const {
  return end_ ? end_->explain(to) : "tcp: " + why_;
}
std::string tcp_fabric::last_words(peer to) const {
  return end_ ? end_->last_words(to) : std::string{};
}
void tcp_fabric::connect(peer to) {
  if (end_) end_->connect(to);
}

}  // namespace verbena::transport::tcp
