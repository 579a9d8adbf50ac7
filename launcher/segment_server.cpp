#include "launcher/segment_server.hpp"

#include "base/fd_passing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::launcher {
namespace {

[[noreturn]] void fail(const char* call) {
  throw error(errc::system,
              fmt::format("cannot set up the node's shared segment: {}: {}", call, std::strerror(errno)));
}

}  // namespace

segment_server::segment_server(std::uint32_t job_size, std::vector<std::uint32_t> ranks, std::uint32_t cores,
                               std::string socket_name)
    : ranks_(std::move(ranks)), in_job_(ranks_.size()), socket_name_(std::move(socket_name)) {
  base::job_shape shape;
  shape.job_size = job_size;
  shape.local_ranks = ranks_;
  shape.cores = cores;
  segment_ = base::create_segment(shape);
  struct stat about {};
  if (::fstat(segment_.get(), &about) != 0) fail("fstat");
  mapped_ = base::mapping::shared(segment_.get(), static_cast<std::size_t>(about.st_size));
  if (!mapped_) fail("mmap");
  std::string why;
  const auto page = base::job_page::open(mapped_, why);
  if (!page) throw error(errc::malformed, why);
  page_ = *page;

  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const base::abstract_address address(socket_name_);
  if (!listener_ || ::bind(listener_.get(), address.get(), address.length) != 0 ||
      ::listen(listener_.get(), 128) != 0)
    fail("listening on an abstract socket");
}

void segment_server::move_to(base::unique_fd place) {
  if (::dup3(segment_.get(), place.get(), O_CLOEXEC) < 0) fail("dup3");
  segment_ = std::move(place);
}

std::string segment_server::variable() const {
  struct stat about {};
  ::fstat(segment_.get(), &about);
  return fmt::format("VERBENA_SEGMENT={}:{}:{}", segment_.get(), about.st_ino, socket_name_);
}

void segment_server::announce(std::uint32_t rank, base::rank_state state, std::uint32_t outcome) {
  base::rank_record& record = page_.record(rank);
  record.outcome = outcome;
  record.state.store(state, std::memory_order_release);  // publishes the outcome
  page_.header().news.fetch_add(1, std::memory_order_release);
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (at != ranks_.end() && *at == rank)
    in_job_[static_cast<std::size_t>(at - ranks_.begin())] = state == base::rank_state::joined;
  if (state == base::rank_state::joined) return;
  for (std::uint32_t i = 0; i < in_job_.size(); ++i)
    if (in_job_[i]) base::ring(page_.bell(i));
}

void segment_server::serve(event_loop& loop) {
  loop.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { answer(); });
}

void segment_server::answer() const {
  const base::unique_fd caller{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!caller) return;
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(caller.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != ::geteuid())
    return;
  char byte = 0;
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  base::fd_control control;
  const int fds[] = {segment_.get()};
  base::attach_fds(message, control, fds);
  ::sendmsg(caller.get(), &message, MSG_NOSIGNAL);
}

}  // namespace verbena::launcher
