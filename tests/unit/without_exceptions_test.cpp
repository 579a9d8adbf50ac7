// The forms that do not throw, of every point-to-point call: what they return when it goes well and when it
// does not. And what started calls refuse to take: temporaries, at compile time.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <type_traits>
#include <utility>

using namespace verbena;
using tests::complaint;
using tests::run_ranks;

namespace {

// The calls, as expressions of their argument; `declval<Type>()` is a temporary, `declval<Type&>()` a named one.
template <class Type>
concept isend_takes = requires(const communicator on, Type&& data) {
  on.isend(std::forward<Type>(data), rank{0});
};
template <class Type>
concept issend_takes = requires(const communicator on, Type&& data) {
  on.issend(std::forward<Type>(data), rank{0});
};
template <class Type>
concept irecv_takes = requires(const communicator on, Type&& data) {
  on.irecv(std::forward<Type>(data), rank{0});
};
template <class Type>
concept send_init_takes = requires(const communicator on, Type&& data) {
  on.send_init(std::forward<Type>(data), rank{0});
};
template <class Type>
concept recv_init_takes = requires(const communicator on, Type&& data) {
  on.recv_init(std::forward<Type>(data), rank{0});
};
template <class Type>
concept matched_irecv_takes = requires(matched_message m, Type&& data) {
  m.irecv(std::forward<Type>(data));
};

template <class Type>
constexpr bool all_take = isend_takes<Type>&& issend_takes<Type>&& irecv_takes<Type>&& send_init_takes<Type>&&
    recv_init_takes<Type>&& matched_irecv_takes<Type>;
template <class Type>
constexpr bool one_takes = isend_takes<Type> || issend_takes<Type> || irecv_takes<Type> ||
                           send_init_takes<Type> || recv_init_takes<Type> || matched_irecv_takes<Type>;

static_assert(all_take<std::vector<int>&> && all_take<std::array<double, 3>&> && all_take<int (&)[4]>);
static_assert(all_take<std::span<int>> && all_take<std::span<int>&> && all_take<const std::span<int>>);
static_assert(isend_takes<const std::vector<int>&> && isend_takes<std::span<const int>>);
static_assert(!one_takes<std::vector<int>> && !one_takes<const std::vector<int>> &&
              !one_takes<std::array<double, 3>>);
static_assert(isend_takes<double&> && isend_takes<const double&> && irecv_takes<double&> &&
              issend_takes<double&> && matched_irecv_takes<double&>);
static_assert(!one_takes<double> && !one_takes<const double>);
// Blocking calls are over before a temporary goes.
static_assert(requires(const communicator on) {
  on.send(std::vector<int>(3), rank{0});
  on.send(3.5, rank{0});
});

}  // namespace

TEST_CASE("calls that do not throw say what they refuse", "[p2p][nothrow]") {
  CHECK(complaint(run_ranks(1, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          constexpr rank nobody{9};
          const errc wrong = errc::invalid_argument;
          int word = 0;
          const auto null = static_cast<void*>(nullptr);
          if (world.sendrecv_replace(std::nothrow, &word, 4, nobody, tag{0}).error != wrong)
            return "sendrecv_replace";
          if (world.sendrecv(std::nothrow, &word, 4, rank{0}, tag{0}, &word, 4, nobody).error != wrong)
            return "sendrecv";
          const auto seen = world.iprobe(std::nothrow, nobody);
          if (!seen || seen->error != wrong) return "iprobe";
          const matched_message waited = world.mprobe(std::nothrow, rank{0}, tag{-5});
          if (waited || waited.reason() != wrong) return "mprobe";
          const auto looked = world.improbe(std::nothrow, nobody);
          if (!looked || *looked || looked->reason() != wrong) return "improbe";

          std::array<request, 3> refused = {world.isend(std::nothrow, &word, 4, nobody),
                                            world.issend(std::nothrow, null, 4, rank{0}),
                                            world.irecv(std::nothrow, &word, 4, rank{0}, tag{-7})};
          for (request& r : refused) {
            if (!r.active() || !r.done() || !r.test()) return "a refused request is not over";
            if (r.cancel()) return "a refused request was cancelled";
          }
          request moved = std::move(refused[0]);
          if (moved.wait(std::nothrow).error != wrong || moved.active()) return "isend";
          if (refused[1].wait(std::nothrow).error != wrong) return "issend";
          std::string said;
          try {
            refused[2].wait();
          } catch (const error& e) {
            said = e.what();
          }
          if (said.find("refused when it was started") == std::string::npos) return "irecv said: " + said;
          if (refused[2].wait().error != wrong) return "a request that was waited for threw again";

          persistent_request never = world.send_init(std::nothrow, null, 8, rank{0});
          if (never || never.reason() != wrong || never.start(std::nothrow).wait(std::nothrow).error != wrong)
            return "send_init";
          if (world.recv_init(std::nothrow, &word, 4, rank{0}, tag{-3})) return "recv_init";
          matched_message nothing;
          if (nothing.recv(std::nothrow, &word, 4).error != wrong) return "recv of no message";
          return {};
        })) == "");
}

TEST_CASE("calls that do not throw do what the others do", "[p2p][nothrow]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          const errc fine = errc::success;
          int out = world.rank().value + 10, in = -1;

          if (world.isend(std::nothrow, &out, 4, other, tag{1}).wait(std::nothrow).error != fine)
            return "isend";
          status got = world.irecv(std::nothrow, &in, 4, other, tag{1}).wait(std::nothrow);
          if (got.error != fine || got.bytes != 4 || in != other.value + 10) return "irecv";

          request synchronous = world.issend(std::nothrow, &out, 4, other, tag{2});
          matched_message found = world.mprobe(std::nothrow, other, tag{2});
          if (!found || found.reason() != fine || found.bytes() != 4) return "mprobe";
          if (found.recv(std::nothrow, &in, 2).error != errc::truncated)
            return "a short recv of a matched message";
          if (synchronous.wait(std::nothrow).error != fine) return "issend";

          if (world.iprobe(std::nothrow, other, tag{3})) return "iprobe of what was not sent";
          if (world.improbe(std::nothrow, other, tag{3})) return "improbe of what was not sent";
          barrier(world);
          world.send(out, other, tag{3});
          std::optional<status> seen;
          while (!seen) seen = world.iprobe(std::nothrow, other, tag{3});
          if (seen->error != fine || seen->bytes != 4) return "iprobe";
          const auto taken = world.improbe(std::nothrow, other, tag{3});
          if (!taken || !*taken) return "improbe";
          in = -1;
          matched_message third = std::move(const_cast<matched_message&>(*taken));
          if (third.irecv(std::nothrow, &in, 4).wait(std::nothrow).error != fine || in != other.value + 10)
            return "irecv of a matched message";

          int both = out;
          got = world.sendrecv_replace(std::nothrow, &both, 4, other, tag{4}, other, tag{4});
          if (got.error != fine || got.bytes != 4 || both != other.value + 10) return "sendrecv_replace";

          persistent_request to = world.send_init(std::nothrow, &out, 4, other, tag{5});
          persistent_request from = world.recv_init(std::nothrow, &in, 4, other, tag{5});
          for (int i = 0; i < 3; ++i) {
            out = 100 * i + world.rank().value;
            request receiving = from.start(std::nothrow), sending = to.start(std::nothrow);
            if (from.start(std::nothrow).wait(std::nothrow).error != errc::invalid_argument)
              return "two starts in flight";
            if (sending.wait(std::nothrow).error != fine || receiving.wait(std::nothrow).error != fine ||
                in != 100 * i + other.value)
              return "a persistent pair";
          }
          return {};
        })) == "");
}

TEST_CASE("tests of many requests that do not throw", "[p2p][nothrow]") {
  CHECK(complaint(run_ranks(1, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          constexpr std::size_t n = 4, bad = 2;
          std::array<std::array<int, 2>, n> in{};
          std::array<request, n> requests;
          const auto post = [&] {
            for (std::size_t i = 0; i < n; ++i)
              requests[i] = world.irecv(in[i].data(), i == bad ? 4 : 8, rank{0}, tag{static_cast<int>(i)});
          };
          const auto send_all = [&] {
            for (std::size_t i = 0; i < n; ++i)
              world.send(std::array<int, 2>{static_cast<int>(i), 7}, rank{0}, tag{static_cast<int>(i)});
          };
          std::array<status, n> statuses;

          post();
          if (test_all(requests, std::nothrow, statuses)) return "test_all before anything was sent";
          if (test_any(requests, std::nothrow) || !test_some(requests, std::nothrow).empty())
            return "something was over before it was sent";
          send_all();
          std::optional<status> all;
          while (!all) all = test_all(requests, std::nothrow, statuses);
          if (all->error != errc::truncated) return "test_all lost the error";
          for (std::size_t i = 0; i < n; ++i)
            if (requests[i].active() || (statuses[i].error == errc::truncated) != (i == bad) ||
                statuses[i].label != tag{static_cast<int>(i)})
              return fmt::format("test_all: status {}", i);

          post();
          send_all();
          std::size_t taken = 0, failed = 0;
          while (taken < n)
            if (const auto one = test_any(requests, std::nothrow)) {
              ++taken;
              if (one->result.error != errc::success) failed += one->index == bad ? 1 : 10;
            }
          if (failed != 1 || test_any(requests, std::nothrow)) return "test_any";

          post();
          send_all();
          for (taken = failed = 0; taken < n;)
            for (const completion& c : test_some(requests, std::nothrow)) {
              ++taken;
              if (c.result.error != errc::success) failed += c.index == bad ? 1 : 10;
            }
          if (failed != 1) return "test_some";

          post();
          send_all();
          bool threw = false;
          try {
            while (!test_all(requests, statuses)) {
            }
          } catch (const error&) {
            threw = true;
          }
          return threw && statuses[bad].error == errc::truncated ? "" : "test_all with statuses";
        })) == "");
}
