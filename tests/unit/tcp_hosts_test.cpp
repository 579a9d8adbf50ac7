// TCP between two hosts, as far as the network makes them: which addresses are used, and what a cable that is pulled does.
#include "tcp_pair.hpp"
#include "two_networks.hpp"

#include <catch2/catch.hpp>

#include <optional>

using namespace verbena;
using namespace verbena::tests;

namespace {

/// A fabric in each network, attached to each other and polled in turn.
struct far_pair {
  two_networks& nets;
  tcp::secret key = tcp::make_secret();
  std::array<std::unique_ptr<tcp::tcp_fabric>, 2> fabrics;
  std::array<counting_sink, 2> seen;
  std::array<std::uint64_t, 2> sent{};

  explicit far_pair(two_networks& n, base::nanoseconds link_timeout = 10 * base::second) : nets(n) {
    tcp::options how;
    how.link_timeout = link_timeout;
    for (std::uint32_t i = 0; i < 2; ++i) {
      nets.enter(i);
      fabrics[i] = std::make_unique<tcp::tcp_fabric>(peer{i}, 2, nullptr, how);
      fabrics[i]->trust(key, "far");
    }
    nets.leave();
  }
  ~far_pair() {
    for (auto& f : fabrics)
      if (f->inside() != nullptr) f->inside()->die();
  }
  far_pair(const far_pair&) = delete;
  far_pair& operator=(const far_pair&) = delete;

  bool attach() {
    bool both = true;
    for (std::uint32_t i = 0; i < 2; ++i)
      both = fabrics[i]->attach(peer{1 - i}, fabrics[1 - i]->address()) && both;
    return both;
  }
  void poll() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      nets.enter(i);
      fabrics[i]->poll(base::steady_now(), seen[i]);
    }
    nets.leave();
  }
  bool post(std::uint32_t from, std::size_t bytes) {
    if (send_numbered(*fabrics[from], peer{1 - from}, sent[from], bytes) != post_result::done) return false;
    ++sent[from];
    return true;
  }
  template <class Condition>
  bool until(Condition&& holds, base::nanoseconds limit = 20 * base::second) {
    for (const base::nanoseconds end = base::steady_now() + limit; !holds(); poll())
      if (base::steady_now() > end) return false;
    return true;
  }
  bool exchange(std::uint64_t more, std::size_t bytes) {
    const std::array<std::uint64_t, 2> goal = {sent[0] + more, sent[1] + more};
    return until([&] {
      for (std::uint32_t i = 0; i < 2; ++i)
        if (sent[i] < goal[i]) post(i, bytes);
      return sent == goal && seen[0].due == sent[1] && seen[1].due == sent[0];
    });
  }
  void check_clean() {
    for (const counting_sink& s : seen) {
      CHECK(s.wrong == 0);
      CHECK(s.downs.empty());
    }
  }
};

#define NEED_TWO_NETWORKS(nets)                                   \
  if (!(nets).usable()) {                                         \
    WARN("skipped: needs root, network namespaces and iproute2"); \
    return;                                                       \
  }

}  // namespace

TEST_CASE("between hosts the bytes go over the cable, and nobody calls itself", "[tcp][hosts]") {
  two_networks nets;
  NEED_TWO_NETWORKS(nets);
  for (std::size_t i = 0; i < 2; ++i) {
    nets.run(i, fmt::format("ip addr add 10.9.0.{}/24 dev cable", i + 1));
    nets.run(i,
             "ip link add bridge0 type veth peer name port0; ip link set port0 up; ip addr add 172.17.0.1/16 "
             "dev bridge0; ip link set bridge0 up");
  }
  // An address of the second host that leads nowhere from the first.
  nets.run(1,
           "ip link add far type veth peer name near; ip link set near up; ip addr add 10.8.0.1/24 dev far; "
           "ip link set far up");
  nets.run(0, "ip route add 10.8.0.0/24 via 10.9.0.77");
  REQUIRE(nets.usable());
  far_pair pair(nets);
  REQUIRE(pair.attach());
  const std::uint64_t before = nets.received(1);
  const base::nanoseconds start = base::steady_now();
  REQUIRE(pair.exchange(1, 8));
  CHECK(base::steady_now() - start < base::second);
  REQUIRE(pair.exchange(20, 50'000));
  pair.check_clean();
  CHECK(nets.received(1) - before > 20 * 50'000);
  const std::string words = pair.fabrics[0]->explain(peer{1});
  INFO(words);
  CHECK(words.find("it is on another host; 10.9.0.1:") != words.npos);
  CHECK(words.find("172.17.0.1") == words.npos);
}

TEST_CASE("hosts with IPv6 alone, or with nothing but link-local addresses, are reached", "[tcp][hosts]") {
  for (const bool global : {true, false}) {
    CAPTURE(global);
    two_networks nets;
    NEED_TWO_NETWORKS(nets);
    for (std::size_t i = 0; global && i < 2; ++i)
      nets.run(i, fmt::format("ip -6 addr add fd00:9::{}/64 dev cable nodad", i + 1));
    for (std::size_t i = 0; i < 2; ++i) {  // link-local addresses come when the kernel finds the cable
      nets.enter(i);
      for (int tries = 0; tries < 300 && tcp::find_addresses(false).link_local_interfaces.empty(); ++tries)
        ::usleep(10'000);
    }
    nets.leave();
    far_pair pair(nets);
    const bool attached = pair.attach();
    INFO(pair.fabrics[0]->explain(peer{1}));
    REQUIRE(attached);
    REQUIRE(pair.exchange(10, 3000));
    pair.check_clean();
    nets.enter(0);  // names of interfaces are its own
    const std::string words = pair.fabrics[0]->explain(peer{1});
    nets.leave();
    INFO(words);
    CHECK(words.find("another host; [") != words.npos);
    if (!global) CHECK(words.find("%cable]") != words.npos);
  }
}

TEST_CASE("hosts without a common family have no way, and say so", "[tcp][hosts]") {
  two_networks nets;
  NEED_TWO_NETWORKS(nets);
  for (std::size_t i = 0; i < 2; ++i) nets.run(i, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
  nets.run(0, "ip addr add 10.9.0.1/24 dev cable");
  nets.run(1, "ip addr add 10.9.0.1/24 dev cable");  // the same one
  far_pair pair(nets);
  CHECK_FALSE(pair.attach());
  CHECK(pair.fabrics[0]->explain(peer{1}).find("none that this host could reach") != std::string::npos);
}

TEST_CASE("a cable that is pulled for three seconds costs nothing but the time", "[tcp][hosts][faults]") {
  two_networks nets;
  NEED_TWO_NETWORKS(nets);
  for (std::size_t i = 0; i < 2; ++i) nets.run(i, fmt::format("ip addr add 10.9.0.{}/24 dev cable", i + 1));
  far_pair pair(nets);
  REQUIRE(pair.attach());
  REQUIRE(pair.exchange(5, 1000));
  nets.run(0, "ip link set cable down");
  const base::nanoseconds pulled = base::steady_now();
  pair.until([&] {
    pair.post(0, 1000);
    pair.post(1, 1000);
    return base::steady_now() - pulled > 3 * base::second;
  });
  nets.run(0, "ip link set cable up");
  CHECK(pair.exchange(5, 1000));
  pair.check_clean();
}

TEST_CASE("a cable that stays pulled is noticed in the link's time, by who sends and by who waits",
          "[tcp][hosts][faults]") {
  two_networks nets;
  NEED_TWO_NETWORKS(nets);
  for (std::size_t i = 0; i < 2; ++i) nets.run(i, fmt::format("ip addr add 10.9.0.{}/24 dev cable", i + 1));
  far_pair pair(nets, 3 * base::second);
  REQUIRE(pair.attach());
  REQUIRE(pair.exchange(5, 1000));
  nets.run(0, "ip link set cable down");
  const base::nanoseconds pulled = base::steady_now();
  REQUIRE(pair.post(0, 1000));
  CHECK(pair.until([&] { return !pair.seen[0].downs.empty() && !pair.seen[1].downs.empty(); }));
  const base::nanoseconds took = base::steady_now() - pulled;
  CHECK(took > 2 * base::second);
  CHECK(took < 8 * base::second);
  for (const counting_sink& s : pair.seen) CHECK(s.downs == std::vector{errc::link_down});
}
