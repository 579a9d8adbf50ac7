#include "launcher/hosts/outgoing.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace verbena::launcher {

void outgoing::add(std::uint32_t rank, std::uint8_t which, base::unique_fd pipe) {
  if (dropped_.at(which)) return;
  const int fd = pipe.get();
  pipes_[fd] = {std::move(pipe), rank, which};
  if (credit_.at(which) > 0) watch(fd);
}

void outgoing::watch(int fd) {
  loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { read_from(fd); });
}

void outgoing::grant(std::uint8_t which, std::uint32_t bytes) {
  std::uint32_t& credit = credit_.at(which & 1);
  const bool stopped = credit == 0;
  credit += std::min(bytes, first_credit - credit);
  if (!stopped || credit == 0) return;
  if (on_all_read_) return read_out();
  // A pipe that nobody reads and that ends reports EPOLLHUP for ever, so those were taken out of the loop.
  for (const auto& [fd, end] : pipes_)
    if (end.which == (which & 1)) watch(fd);
}

outgoing::found outgoing::read_from(int fd) {
  static thread_local std::array<char, 64 * 1024> bytes;
  const auto at = pipes_.find(fd);
  if (at == pipes_.end()) return found::end;
  const std::uint8_t which = at->second.which;
  std::uint32_t& credit = credit_.at(which);
  if (credit == 0) return found::no_credit;
  const long count = ::read(fd, bytes.data(), std::min<std::size_t>(bytes.size(), credit));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return found::nothing;
  if (count <= 0) {
    loop_.forget(fd);
    pipes_.erase(at);
    return found::end;
  }
  credit -= static_cast<std::uint32_t>(count);
  if (credit == 0)
    for (const auto& [each, end] : pipes_)
      if (end.which == which) loop_.forget(each);
  send_(at->second.rank, which, {bytes.data(), static_cast<std::size_t>(count)});
  return found::bytes;
}

void outgoing::finish(std::function<void()> action) {
  on_all_read_ = std::move(action);
  read_out();
}

/// Nobody writes any more: what is in a pipe is all there is, whoever may still hold its other end.
void outgoing::read_out() {
  std::vector<int> open;
  for (const auto& [fd, end] : pipes_) open.push_back(fd);
  for (const int fd : open) {
    found last = found::bytes;
    while (last == found::bytes) last = read_from(fd);
    if (last != found::nothing) continue;
    loop_.forget(fd);
    pipes_.erase(fd);
  }
  end_when_empty();
}

void outgoing::end_when_empty() {
  if (pipes_.empty() && on_all_read_) std::exchange(on_all_read_, nullptr)();
}

void outgoing::drop(std::uint8_t which) {
  dropped_.at(which & 1) = true;
  std::erase_if(pipes_, [this, which](const auto& each) {
    if (each.second.which != which) return false;
    loop_.forget(each.first);
    return true;
  });
  end_when_empty();
}

}  // namespace verbena::launcher
