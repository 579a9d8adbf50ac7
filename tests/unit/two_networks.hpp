// Two network namespaces with a cable between them, as two hosts have; nothing with a name, so nothing is left by a test that
// dies. Needs root and iproute2; `usable` says whether it worked.
#pragma once

#include "base/fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace verbena::tests {

class two_networks {
 public:
  two_networks() : home_(open_own()) {
    for (base::unique_fd& network : networks_) {
      if (!home_ || ::unshare(CLONE_NEWNET) != 0) return;
      network = open_own();
    }
    usable_ = true;
    run(0, fmt::format("ip link add cable type veth peer name cable netns /proc/{}/fd/{}", ::getpid(),
                       networks_[1].get()));
    for (std::size_t i = 0; i < 2; ++i) {
      run(i, "ip link set lo up");
      run(i,
          "sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 "
          "net.ipv6.conf.cable.accept_dad=0");
      run(i, "ip link set cable up");
    }
    leave();
  }
  ~two_networks() { leave(); }
  two_networks(const two_networks&) = delete;
  two_networks& operator=(const two_networks&) = delete;

  bool usable() const { return usable_; }
  /// This thread makes sockets there from now on.
  void enter(std::size_t i) { ::setns(networks_[i].get(), CLONE_NEWNET); }
  void leave() {
    if (home_) ::setns(home_.get(), CLONE_NEWNET);
  }
  /// A shell command there; it must succeed.
  void run(std::size_t i, const std::string& command) {
    enter(i);
    usable_ = std::system(command.c_str()) == 0 && usable_;  // NOLINT
    leave();
  }
  /// Bytes that came by the cable.
  std::uint64_t received(std::size_t i) {
    enter(i);
    std::ifstream lines("/proc/thread-self/net/dev");
    leave();
    std::uint64_t bytes = 0;
    for (std::string word; lines >> word;)
      if (word == "cable:") lines >> bytes;
    return bytes;
  }

 private:
  static base::unique_fd open_own() {
    return base::unique_fd{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)};
  }

  base::unique_fd home_;
  std::array<base::unique_fd, 2> networks_;
  bool usable_ = false;
};

}  // namespace verbena::tests
