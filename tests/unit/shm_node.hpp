// A node in one process, or shared with children by fork: the segment, its job page, and fabrics over it.
#pragma once

#include "base/job_page.hpp"
#include "transport/shm/shm_fabric.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace verbena::testing {

using namespace transport;

struct shm_node {
  base::unique_fd fd;
  base::mapping map;
  base::job_page page;

  /// Ranks `first`, `first` + 1, ... of a larger job live on this node.
  explicit shm_node(std::uint32_t ranks, std::uint64_t rank_span = 0, std::uint32_t first = 0) {
    std::vector<std::uint32_t> local(ranks);
    std::iota(local.begin(), local.end(), first);
    fd = base::create_segment({.job_size = first + ranks, .local_ranks = local, .rank_span = rank_span});
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) throw std::runtime_error("fstat");
    map = base::mapping::shared(fd.get(), static_cast<std::size_t>(info.st_size));
    std::string why;
    auto opened = base::job_page::open(map, why);
    if (!opened) throw std::runtime_error(why);
    page = *opened;
  }
  std::unique_ptr<shm::shm_fabric> fabric(std::uint32_t local_index, shm::options how = {}) const {
    return std::make_unique<shm::shm_fabric>(page, std::span{map.data(), map.size()}, local_index, how);
  }
  shm::places places() const {
    const auto& h = page.header();
    return shm::make_places(shm::make_layout(h.local_size, h.shm_offset, h.segment_bytes));
  }
  template <class T>
  T& at(std::uint64_t offset) const {
    return *reinterpret_cast<T*>(map.data() + offset);
  }
};

/// Runs `child` in a forked process; its result is the exit status, which wait() returns (-signal if killed).
class child_process {
 public:
  explicit child_process(const std::function<int()>& child) : pid_(::fork()) {
    if (pid_ == 0) {
      ::alarm(60);  // a child that hangs ends itself
      ::_exit(child());
    }
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

/// Records what poll reports.
struct recorder {
  struct packet {
    peer from;
    envelope head;
    std::vector<std::byte> payload;
  };
  std::vector<packet> packets;
  std::vector<std::uint64_t> flags;
  std::vector<std::pair<peer, errc>> downs;

  void on_packet(peer from, envelope head, std::span<const std::byte> payload) noexcept {
    packets.push_back({from, head, {payload.begin(), payload.end()}});
  }
  void on_flag(peer, std::uint64_t word) noexcept { flags.push_back(word); }
  void on_peer_down(peer who, errc why) noexcept { downs.emplace_back(who, why); }
  void on_limits_changed(peer) noexcept {}
};

/// Byte `i` of message `n`.
inline std::byte pattern(std::uint64_t n, std::uint64_t i) {
  return static_cast<std::byte>((n * 131 + i * 7 + (i >> 8)) & 0xff);
}
inline void fill(std::byte* to, std::uint64_t n, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = pattern(n, i);
}
inline bool matches(const std::byte* at, std::uint64_t n, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i)
    if (at[i] != pattern(n, i)) return false;
  return true;
}

/// Sends message `n` of `bytes`; its envelope says so.
inline post_result send_message(shm::shm_fabric& from, peer to, std::uint64_t n, std::size_t bytes) {
  return from.send(to, {n, bytes}, bytes, [&](std::byte* room) { fill(room, n, bytes); });
}

}  // namespace verbena::testing
