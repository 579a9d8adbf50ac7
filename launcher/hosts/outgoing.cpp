#include "launcher/hosts/outgoing.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace verbena::launcher {

void outgoing::add(std::uint32_t rank, std::uint8_t which, base::unique_fd pipe) {
  if (dropped_.at(which)) return;
  const int fd = pipe.get();
  pipes_[fd] = {std::move(pipe), rank, which};
  if (credit_ > 0) watch(fd);
}

void outgoing::watch(int fd) {
  loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { read_from(fd); });
}

void outgoing::grant(std::uint32_t bytes) {
  const bool stopped = credit_ == 0;
  credit_ += std::min(bytes, first_credit - credit_);
  // A pipe that nobody reads and that ends reports EPOLLHUP for ever, so those were taken out of the loop.
  if (stopped && credit_ > 0)
    for (const auto& [fd, end] : pipes_) watch(fd);
}

void outgoing::read_from(int fd) {
  static thread_local std::array<char, 64 * 1024> bytes;
  const auto at = pipes_.find(fd);
  if (at == pipes_.end() || credit_ == 0) return;
  const long count = ::read(fd, bytes.data(), std::min<std::size_t>(bytes.size(), credit_));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    loop_.forget(fd);
    pipes_.erase(at);
    if (pipes_.empty() && on_all_read_) on_all_read_();
    return;
  }
  credit_ -= static_cast<std::uint32_t>(count);
  if (credit_ == 0)
    for (const auto& [each, end] : pipes_) loop_.forget(each);
  send_(at->second.rank, at->second.which, {bytes.data(), static_cast<std::size_t>(count)});
}

void outgoing::on_all_read(std::function<void()> action) {
  if (pipes_.empty()) return action();
  on_all_read_ = std::move(action);
}

void outgoing::drop(std::uint8_t which) {
  dropped_.at(which & 1) = true;
  std::erase_if(pipes_, [this, which](const auto& each) {
    if (each.second.which != which) return false;
    loop_.forget(each.first);
    return true;
  });
  if (pipes_.empty() && on_all_read_) on_all_read_();
}

}  // namespace verbena::launcher
