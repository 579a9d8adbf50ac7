#include "launcher/keeper_link.hpp"

#include "base/fd_passing.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::launcher {

keeper_link::keeper_link(event_loop& loop, base::unique_fd socket, callbacks call)
    : loop_(loop), socket_(std::move(socket)), call_(std::move(call)) {
  loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) pump();
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
  });
}

keeper_link::~keeper_link() {
  if (!gone_) loop_.forget(socket_.get());
}

void keeper_link::send_environment(const std::vector<std::string>& variables) {
  std::string tail;
  for (const std::string& v : variables) tail.append(v.c_str(), v.size() + 1);
  push({keeper_order::kind::variables}, std::move(tail));
}

void keeper_link::start(std::uint32_t rank, const std::vector<unsigned>& cpus) {
  push({keeper_order::kind::start, false, rank},
       std::string(reinterpret_cast<const char*>(cpus.data()), cpus.size() * sizeof(unsigned)));
}

void keeper_link::signal(int number, bool from_terminal) {
  push({keeper_order::kind::signal, from_terminal, 0, number});
}

void keeper_link::resume() {
  push({keeper_order::kind::resume});
}

void keeper_link::kill_all() {
  std::erase_if(orders_, [](const pending& p) { return p.order.what == keeper_order::kind::start; });
  push({keeper_order::kind::kill});
}

void keeper_link::end() {
  push({keeper_order::kind::end});
}

void keeper_link::push(keeper_order order, std::string tail) {
  orders_.push_back({order, std::move(tail)});
  pump();
}

void keeper_link::pump() {
  while (!gone_ && !orders_.empty() && send_one(orders_.front()))
    if (!orders_.empty()) orders_.pop_front();
  const bool wanted = !gone_ && !orders_.empty();
  if (wanted != writing_ && !gone_) loop_.change(socket_.get(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
  writing_ = wanted;
}

bool keeper_link::open_outputs(std::uint32_t rank, std::array<base::unique_fd, 2>& ours,
                               std::array<base::unique_fd, 2>& theirs) const {
  if (call_.open_files) {
    theirs = call_.open_files(rank);
    return theirs[0] && theirs[1];
  }
  for (const std::size_t i : {0U, 1U}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    ours[i].reset(ends[0]);
    theirs[i].reset(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // the rank's end stays blocking
  }
  return true;
}

bool keeper_link::send_one(const pending& next) {
  iovec data[2] = {{const_cast<keeper_order*>(&next.order), sizeof next.order},
                   {const_cast<char*>(next.tail.data()), next.tail.size()}};
  msghdr message{};
  message.msg_iov = data;
  message.msg_iovlen = 2;
  base::fd_control control;
  std::array<base::unique_fd, 2> ours, theirs;
  if (next.order.what == keeper_order::kind::start) {
    if (!open_outputs(next.order.rank, ours, theirs)) {
      const int error = errno;
      orders_.clear();
      call_.on_no_output(error);
      return false;
    }
    const int numbers[2] = {theirs[0].get(), theirs[1].get()};
    base::attach_fds(message, control, numbers);
  }
  while (::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno != EAGAIN;  // a dead keeper is noticed by reading
  }
  if (ours[0]) call_.on_pipes(next.order.rank, std::move(ours[0]), std::move(ours[1]));
  return true;
}

void keeper_link::receive() {
  while (!gone_) {
    keeper_report report;
    const long count = ::recv(socket_.get(), &report, sizeof report, MSG_DONTWAIT);
    if (count == static_cast<long>(sizeof report)) {
      call_.on_report(report);
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0 && errno == ECONNRESET) continue;  // it left without reading all; what it has said is still to come
    gone_ = true;
    orders_.clear();
    loop_.forget(socket_.get());
    call_.on_gone();
  }
}

}  // namespace verbena::launcher
