#include "launcher/hosts/connection.hpp"

#include "base/network.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace verbena::launcher {
namespace {

/// False: this socket is within a host.
bool ask_kernel(int socket, tcp_info& seen) {
  socklen_t size = sizeof seen;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &seen, &size) == 0;
}

base::nanoseconds silence_in(const tcp_info& seen) {
  return std::min(seen.tcpi_last_ack_recv, seen.tcpi_last_data_recv) * base::millisecond;
}

}  // namespace

connection::connection(event_loop& loop, base::unique_fd socket, callbacks call)
    : loop_(loop), socket_(std::move(socket)), call_(std::move(call)) {
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  set_link_timeout(10 * base::second);
  loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) { on_ready(events); });
}

void connection::set_link_timeout(base::nanoseconds timeout) {
  if (!socket_) return;
  const base::nanoseconds patience = std::max(timeout, 3 * base::second);
  base::ask_often(socket_.get(), patience);
  silence_ = patience + base::second / 2;  // the last sign of life may be one question old when the link breaks
  loop_.cancel(doubt_);
  doubt();
}

base::nanoseconds connection::unheard() const {
  tcp_info seen{};
  return socket_ && ask_kernel(socket_.get(), seen) ? silence_in(seen) : 0;
}

/// Silence alone says nothing: a kernel that is asked whether its reader has room again is asked more and more seldom. Lost is who
/// owes an answer as well. (TCP_USER_TIMEOUT would end the connection to a host that answers, but whose processes are stopped; and
/// it counts anew from the first byte that is sent into the silence.)
void connection::doubt() {
  tcp_info seen{};
  if (!socket_ || !ask_kernel(socket_.get(), seen)) return;
  const base::nanoseconds silent = silence_in(seen);
  if (silent >= silence_ && (seen.tcpi_unacked > 0 || seen.tcpi_probes >= 2)) return lose(ETIMEDOUT);
  doubt_ = loop_.after(std::max(silence_ - silent, silence_ / 20), [this] { doubt(); });
}

connection::~connection() {
  close();
}

void connection::close() {
  if (!socket_) return;
  loop_.cancel(doubt_);
  loop_.forget(socket_.get());
  socket_.reset();
}

void connection::send(frame_kind kind, std::string_view payload) {
  if (!socket_) return;
  queue_ += frame_head(kind, payload.size());
  queue_ += payload;
  pump();
}

void connection::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) pump();
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void connection::receive() {
  std::array<char, 64 * 1024> bytes;
  if (!socket_) return;
  const long count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return lose(count == 0 ? 0 : errno);
  incoming_.add({bytes.data(), static_cast<std::size_t>(count)});
  frame_kind kind{};
  for (std::string payload; socket_ && incoming_.next(kind, payload);) call_.on_frame(kind, payload);
  if (incoming_.broken()) lose(EPROTO);
}

void connection::pump() {
  while (socket_ && at_ < queue_.size()) {
    const long count =
        ::send(socket_.get(), queue_.data() + at_, queue_.size() - at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      // What the other side has said before is still there to be read; its end is noticed by that.
      at_ = queue_.size();
      break;
    }
    at_ += static_cast<std::size_t>(count);
  }
  const bool empty = at_ == queue_.size();
  if (empty || at_ > (1U << 20)) {
    queue_.erase(0, at_);
    at_ = 0;
  }
  if (socket_ && writing_ == empty) {
    writing_ = !empty;
    loop_.change(socket_.get(), writing_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
}

void connection::lose(int error) {
  if (!socket_) return;
  close();
  if (call_.on_closed) call_.on_closed(error);
}

}  // namespace verbena::launcher
