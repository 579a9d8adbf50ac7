// TCP over the loopback for the contract suite: several endpoints in one process, polled in turn by one thread. A death: the
// endpoint's sockets close, as those of a process that ended, and then it is announced in the job page, as a launcher does it.
#pragma once

#include "fabric_set.hpp"
#include "tests/unit/shm_node.hpp"
#include "transport/sim/random.hpp"
#include "transport/tcp/tcp_fabric.hpp"

#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace verbena::contract {

/// `Connected`: before the first packet; otherwise by it.
template <bool Connected>
class tcp_set {
 public:
  using fabric_type = transport::tcp::tcp_fabric;
  static constexpr const char* name = Connected ? "tcp, connected" : "tcp";
  static constexpr std::uint32_t most = 16;
  static constexpr int quiet_rounds = 150;  // callers are looked for in every 64th poll
  static constexpr bool can_kill = true;

  explicit tcp_set(std::uint32_t size) : node_(size) {
    const transport::tcp::secret key = transport::tcp::make_secret();
    transport::tcp::options how;
    how.only_this_host = true;
    for (std::uint32_t i = 0; i < size; ++i) {
      fabrics_.push_back(std::make_unique<fabric_type>(transport::peer{i}, size, &node_.page, how));
      fabrics_[i]->trust(key, "contract");
    }
    for (std::uint32_t i = 0; i < size; ++i)
      for (std::uint32_t j = 0; j < size; ++j)
        if (i != j && !fabrics_[i]->attach(transport::peer{j}, fabrics_[j]->address()))
          throw std::runtime_error(fabrics_[i]->explain(transport::peer{j}));
    if (Connected) connect();
  }
  ~tcp_set() {
    for (auto& f : fabrics_) f->inside()->die();  // nobody polls any more: no farewells
  }
  tcp_set(const tcp_set&) = delete;
  tcp_set& operator=(const tcp_set&) = delete;
  fabric_type& fabric(std::uint32_t i) { return *fabrics_[i]; }
  void kill(std::uint32_t i) {
    fabrics_[i]->inside()->die();
    node_.page.announce(i, base::rank_state::failed, 9);
  }
  /// Packets take a while in the kernel; nobody says when they are through.
  bool pass_time() {
    ::usleep(100);
    return false;
  }
  base::nanoseconds now() { return base::steady_now(); }

 protected:
  std::uint32_t size() const { return static_cast<std::uint32_t>(fabrics_.size()); }

 private:
  void connect() {
    const auto everything = [&](auto&& each) {
      for (std::uint32_t i = 0; i < size(); ++i)
        for (std::uint32_t j = 0; j < size(); ++j)
          if (i != j) each(*fabrics_[i], transport::peer{j});
    };
    everything([](fabric_type& f, transport::peer to) { f.connect(to); });
    const base::nanoseconds deadline = now() + 20 * base::second;
    transport::null_sink nobody;
    for (bool settled = false; !settled;) {
      if (now() > deadline) throw std::runtime_error("the endpoints do not connect");
      for (auto& f : fabrics_) f->poll(now(), nobody);
      settled = true;
      everything([&](fabric_type& f, transport::peer to) { settled = settled && f.settled(to); });
    }
  }

  testing::shm_node node_;
  std::vector<std::unique_ptr<fabric_type>> fabrics_;
};
static_assert(fabric_set<tcp_set<true>>);

/// Connections break again and again, up to a number of times, so that every wait has an end.
class breaking_tcp_set : public tcp_set<false> {
 public:
  static constexpr const char* name = "tcp, breaking links";
  using tcp_set::tcp_set;

  bool pass_time() {
    constexpr int most_breaks = 40;
    if (breaks_ < most_breaks && size() > 1 && ++steps_ % 7 == 3) {
      ++breaks_;
      const std::uint32_t one = random_.below(size());
      const std::uint32_t other = (one + 1 + random_.below(size() - 1)) % size();
      fabric(one).inside()->cut(transport::peer{other}, random_.below(2) == 0);
    }
    return tcp_set::pass_time();
  }

 private:
  transport::sim::random_source random_{5};
  int breaks_ = 0, steps_ = 0;
};
static_assert(fabric_set<breaking_tcp_set>);

}  // namespace verbena::contract
