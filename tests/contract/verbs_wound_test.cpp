// How a connection breaks where a port alone does not tell it: a queue pair that fails by itself, a port that is down just
// while accesses are opened, a rank that calls the library seldom. To see and to hurt queue pairs this program stands in
// front of two functions of libibverbs.
#include "verbs_pair.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

using namespace verbena::contract;
using verbena::errc;
namespace base = verbena::base;

namespace {

struct change {
  const ibv_qp* of;
  ibv_qp_state to;
};
std::vector<ibv_qp*> made;
std::vector<change> changes;

}  // namespace

extern "C" ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wishes) {
  using function = ibv_qp*(ibv_pd*, ibv_qp_init_attr*);
  static auto* const real = reinterpret_cast<function*>(::dlvsym(RTLD_NEXT, "ibv_create_qp", "IBVERBS_1.1"));
  ibv_qp* const fresh = real(domain, wishes);
  made.push_back(fresh);
  return fresh;
}

extern "C" int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* to, int mask) {
  using function = int(ibv_qp*, ibv_qp_attr*, int);
  static auto* const real = reinterpret_cast<function*>(::dlvsym(RTLD_NEXT, "ibv_modify_qp", "IBVERBS_1.1"));
  if (mask & IBV_QP_STATE) changes.push_back({queue_pair, to->qp_state});
  return real(queue_pair, to, mask);
}

TEST_CASE("a rank that calls the library seldom mends a link all the same", "[verbs][faults][wounds]") {
  strangers s(2, {});
  for (std::uint32_t i = 0; i < 2; ++i) s.poll(i);
  const auto poll_seldom = [&](base::nanoseconds limit) {
    for (const auto end = base::steady_now() + limit;
         base::steady_now() < end && s.seen[1].packets() != s.sent[0][1];) {
      ::usleep(50'000);
      for (std::uint32_t i = 0; i < 2; ++i) s.poll(i);
    }
  };
  port_goes("down");
  s.flood(0, 1);
  poll_seldom(300 * base::millisecond);
  CHECK(s.seen[1].packets() == 0);
  port_goes("up");
  poll_seldom(2 * base::second);
  CHECK(s.seen[1].packets() == s.sent[0][1]);
}

TEST_CASE("accesses that are opened while the port is down wait until it is back",
          "[verbs][faults][wounds]") {
  const bool asks = GENERATE(true, false);  // or answers
  CAPTURE(asks);
  pair p;
  fill(p.source, 5);
  tracked& put = p.put();
  ::usleep(50'000);
  if (asks) {
    for (int i = 0; i < 10; ++i) p.both.poll(1);
    ::usleep(50'000);
  }
  port_goes("down");
  for (int i = 0; i < 10; ++i) p.both.poll(asks ? 0 : 1);
  p.within(300 * base::millisecond, [&] { return put.ends != 0; });
  CHECK(put.ends == 0);
  port_goes("up");
  CHECK(p.within(9 * base::second, [&] { return p.is_over(); }));
  CHECK(put.op.result.error == errc::success);
  CHECK(matches(p.target, 5));
  p.flag();
  CHECK(p.within(5 * base::second, [&] { return p.is_over(); }));
  CHECK(p.found.text() == "");
}

TEST_CASE("a queue pair for accesses that fails by itself is no access's fault", "[verbs][faults][wounds]") {
  pair p;
  p.flag();
  REQUIRE(p.within(10 * base::second, [&] { return p.is_over(); }));
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_ERR;
  REQUIRE(ibv_modify_qp(made[made.size() - 2], &to, IBV_QP_STATE) == 0);  // the last one is the target's half
  fill(p.source, 6);
  const std::vector<tracked*> after{&p.flag(), &p.put(), &p.flag()};
  CHECK(p.within(9 * base::second, [&] { return p.is_over(); }));
  for (const tracked* t : after) CHECK(t->op.result.error == errc::success);
  CHECK(matches(p.target, 6));
  CHECK(p.is_as_sent(1));
  CHECK(p.both.at(0).explain(p.one).find("made anew after") != std::string::npos);
  CHECK(p.found.text() == "");
}

// A device may forget the unread completions of a queue pair that is reset, and the receives they tell of.
TEST_CASE("what the dead had sent is told before their queue pairs are reset", "[verbs][faults][wounds]") {
  pair p;
  p.flag();
  REQUIRE(p.within(10 * base::second, [&] { return p.is_over(); }));
  const ibv_qp* const serving = made.back();
  p.flag();
  ::usleep(100'000);  // it is there, and not read
  p.both.kill(0);
  changes.clear();
  CHECK(p.within(5 * base::second, [&] { return p.both.seen(1).count(event::kind::down) == 1; }));
  CHECK(p.is_as_sent(1));
  CHECK(p.both.seen(1).count(event::kind::flag) == 2);
  const auto is = [&](ibv_qp_state state) {
    return std::any_of(changes.begin(), changes.end(),
                       [&](const change& c) { return c.of == serving && c.to == state; });
  };
  CHECK(is(IBV_QPS_ERR));
  CHECK_FALSE(is(IBV_QPS_RESET));
}
