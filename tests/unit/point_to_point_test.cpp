// The point-to-point calls over the real shared-memory fabric, ranks as threads: every call, every protocol.
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <limits>
#include <set>

using namespace verbena;
using tests::complaint;
using tests::run_ranks;

namespace {

using bytes_of = std::vector<std::uint8_t>;

bytes_of pattern(std::size_t size, std::size_t seed) {
  bytes_of data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8) + seed);
  return data;
}

/// One size for each protocol: nothing, one line, one packet, pieces, announced.
constexpr std::array<std::size_t, 6> sizes = {0, 8, 1000, 4097, 20'000, 300'000};

std::string text_of(const error& e) {
  return e.what();
}

/// What a call throws, or nothing.
template <class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return text_of(e);
  }
  return {};
}

}  // namespace

TEST_CASE("a synchronous send returns when it is matched", "[p2p][threads]") {
  base::settings settings;
  settings.single_copy = GENERATE("auto", "off");
  settings.unexpected_budget = GENERATE(4U << 20, 0U);
  CHECK(complaint(run_ranks(2, settings, [](context& self) -> std::string {
          const communicator world = self.world();
          for (const std::size_t size : sizes) {
            const bytes_of data = pattern(size, 1);
            bytes_of into(size);
            if (world.rank() == rank{0}) {
              request r = world.issend(data, rank{1}, tag{1});
              int word = 0;
              world.recv(word, rank{1}, tag{2});  // it has arrived there, and is not matched
              if (r.test()) return fmt::format("issend of {} B was over before its receive", size);
              world.send(word, rank{1}, tag{3});
              r.wait();
              world.ssend(data, rank{1}, tag{1});
            } else {
              world.probe(rank{0}, tag{1});
              world.send(1, rank{0}, tag{2});
              int word = 0;
              world.recv(word, rank{0}, tag{3});
              for (int i = 0; i < 2; ++i) {
                world.recv(into, rank{0}, tag{1});
                if (into != data) return fmt::format("wrong bytes at {} B", size);
              }
            }
          }
          return {};
        })) == "");
}

TEST_CASE("sendrecv around a ring moves everything one on, in one buffer or two", "[p2p][threads]") {
  CHECK(complaint(run_ranks(3, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const int me = world.rank().value, n = world.size();
          const rank right{(me + 1) % n}, left{(me + n - 1) % n};
          for (const std::size_t size : sizes) {
            bytes_of mine = pattern(size, static_cast<std::size_t>(me)), into(size);
            const bytes_of expected = pattern(size, static_cast<std::size_t>(left.value));
            status got = world.sendrecv(mine, right, tag{4}, into, left, tag{4});
            if (into != expected || got.source != left || got.bytes != size) return "sendrecv is wrong";
            got = world.sendrecv_replace(mine, right, tag{5}, left, tag{5});
            if (mine != expected || got.source != left || got.bytes != size)
              return "sendrecv_replace is wrong";
            got = world.sendrecv(std::nothrow, mine.data(), size, world.rank(), tag{6}, into.data(), size,
                                 world.rank());
            if (into != mine || got.error != errc::success) return "sendrecv with itself is wrong";
          }
          int one = me;
          world.sendrecv_replace(one, right, tag{0}, left);
          return one == left.value ? "" : "one object is wrong";
        })) == "");
}

TEST_CASE("probes see size, source and tag; a matched message is nobody else's", "[p2p][threads]") {
  base::settings settings;
  settings.single_copy = GENERATE("auto", "off");
  settings.unexpected_budget = GENERATE(4U << 20, 0U);
  CHECK(complaint(run_ranks(2, settings, [](context& self) -> std::string {
          const communicator world = self.world();
          if (world.rank() == rank{0}) {
            std::vector<bytes_of> data;
            std::vector<request> requests;
            for (const std::size_t size : sizes)
              for (std::size_t i = 0; i < 5; ++i) data.push_back(pattern(size, i));
            for (const bytes_of& d : data) requests.push_back(world.isend(d, rank{1}, tag{7}));
            requests.push_back(world.issend(data[0], rank{1}, tag{9}));  // thrown away unreceived
            wait_all(requests);
            return {};
          }
          if (world.iprobe(any_source, tag{8})) return "iprobe saw what was never sent";
          for (const std::size_t size : sizes) {
            const status seen = world.probe(any_source, any_tag);
            if (seen.source != rank{0} || seen.label != tag{7} || seen.bytes != size)
              return "probe saw another message";
            while (!world.iprobe(rank{0}, tag{7})) self.progress();
            bytes_of first(size), second(size), third(size), fourth(size + 1), fifth(size);
            matched_message m = world.mprobe(rank{0}, tag{7});
            std::optional<matched_message> n;
            while (!n) n = world.improbe(any_source, any_tag);
            world.recv(third, rank{0}, tag{7});  // the two before it are taken
            if (m.bytes() != size || m.source() != rank{0} || m.label() != tag{7})
              return "mprobe saw another message";
            request r = n->irecv(second);
            m.recv(first);
            r.wait();
            if (m || *n) return "a received message is still there";
            if (thrown([&] { m.recv(first); }) != "recv: this matched message was received already")
              return "received twice";
            if (first != pattern(size, 0) || second != pattern(size, 1) || third != pattern(size, 2))
              return fmt::format("wrong bytes at {} B", size);
            fourth.back() = 0xee;
            matched_message shorter = world.mprobe(rank{0});
            if (size != 0) {
              const std::string text = thrown([&] { shorter.recv(fourth.data() + 1, size - 1); });
              if (text != fmt::format("rank 1: recv posted {} B, got {} B from rank 0 tag 7", size - 1, size))
                return text;
              if (fourth.back() != 0xee && size > 1 && fourth[size] == 0) return "wrote beyond its room";
            } else {
              shorter.recv(fourth.data(), 0);
            }
            world.recv(fifth, rank{0});
            if (fifth != pattern(size, 4)) return "the message after a truncated one is wrong";
          }
          static_cast<void>(world.mprobe(rank{0}, tag{9}));
          return {};
        })) == "");
}

TEST_CASE("truncation: every call, every protocol, no byte beyond the buffer, the next message unharmed",
          "[p2p][threads]") {
  base::settings settings;
  settings.single_copy = GENERATE("auto", "off");
  settings.unexpected_budget = GENERATE(4U << 20, 0U);
  const bool to_itself = GENERATE(false, true);
  CHECK(complaint(run_ranks(2, settings, [to_itself](context& self) -> std::string {
          const communicator world = self.world();
          const rank from = to_itself ? world.rank() : rank{0}, to = to_itself ? world.rank() : rank{1};
          constexpr int calls = 6;
          for (const std::size_t size : sizes) {
            if (size == 0) continue;
            const bytes_of data = pattern(size, 2);
            std::vector<request> sending;
            if (world.rank() == from)
              for (int i = 0; i < calls; ++i) {
                sending.push_back(world.isend(data, to, tag{3}));
                sending.push_back(world.isend(data, to, tag{3}));
              }
            if (world.rank() == to) {
              const std::size_t room = size / 2;
              for (int call = 0; call < calls; ++call) {
                bytes_of into(size, 0xee), next(size);
                status got;
                std::string text;
                switch (call) {
                  case 0:
                    text = thrown([&] { world.recv(into.data(), room, from, tag{3}); });
                    break;
                  case 1:
                    got = world.recv(std::nothrow, into.data(), room, any_source, any_tag);
                    break;
                  case 2:
                    text = thrown([&] { world.irecv(into.data(), room, from, tag{3}).wait(); });
                    break;
                  case 3: {
                    request r = world.irecv(into.data(), room, any_source, tag{3});
                    got = r.wait(std::nothrow);
                    break;
                  }
                  case 4: {
                    persistent_request p = world.recv_init(into.data(), room, from, tag{3});
                    text = thrown([&] { p.start().wait(); });
                    break;
                  }
                  default:
                    request own = world.irecv(nullptr, 0, world.rank(), tag{77});
                    got = world.sendrecv(std::nothrow, nullptr, 0, world.rank(), tag{77}, into.data(), room,
                                         from, tag{3});
                    own.wait();
                }
                if (text.empty()) {
                  if (got.error != errc::truncated || got.source != from || got.label != tag{3} ||
                      got.bytes > room)
                    return fmt::format("call {} at {} B: wrong status", call, size);
                } else if (text != fmt::format("rank {}: recv posted {} B, got {} B from rank {} tag 3",
                                               to.value, room, size, from.value)) {
                  return text;
                }
                for (std::size_t i = room; i < size; ++i)
                  if (into[i] != 0xee)
                    return fmt::format("call {} at {} B wrote beyond its room", call, size);
                world.recv(next, from, tag{3});
                if (next != data) return fmt::format("call {} at {} B harmed the next message", call, size);
              }
            }
            for (request& r : sending) r.wait();
          }
          return {};
        })) == "");
}

TEST_CASE("a receive can be cancelled, a send cannot", "[p2p][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          bytes_of big(300'000, 3), into(300'000);
          int never = 5;
          request r = world.irecv(never, other, tag{1});
          if (!r.cancel()) return "an unmatched receive was not cancelled";
          const status got = r.wait();
          if (got.error != errc::cancelled || never != 5) return "a cancelled receive has the wrong status";
          if (r.cancel()) return "cancelled twice";
          request s = world.isend(big, other, tag{2});
          if (s.cancel()) return "a send was cancelled";
          request matched = world.irecv(into, other, tag{2});
          while (!matched.test()) {
          }
          if (matched.cancel()) return "a matched receive was cancelled";
          matched.wait();
          s.wait();
          return into == big ? "" : "wrong bytes";
        })) == "");
}

TEST_CASE("persistent sends and receives start again and again", "[p2p][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          for (const std::size_t size : sizes) {
            bytes_of out(size), in(size);
            persistent_request send = world.send_init(out, other, tag{1}),
                               recv = world.recv_init(in, other, tag{1});
            for (std::size_t i = 0; i < 20; ++i) {
              const bytes_of next = pattern(size, i);
              std::copy(next.begin(), next.end(), out.begin());  // the same memory
              std::array<request, 2> both = {recv.start(), send.start()};
              if (i == 0 && thrown([&] { recv.start(); }) !=
                                "start: the request of the last start has not been waited for")
                return "started twice";
              wait_all(both);
              if (in != pattern(size, i)) return fmt::format("wrong bytes at {} B, round {}", size, i);
            }
            persistent_request never = world.recv_init(in, other, tag{99});
            request r = never.start();
            if (!r.cancel()) return "a started receive was not cancelled";
          }
          return {};
        })) == "");
}

TEST_CASE("waiting for many: all, any, some; errors after all are over", "[p2p][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          const rank other{1 - world.rank().value};
          constexpr std::size_t n = 8;
          std::array<std::array<int, 2>, n> in{};
          std::array<request, n> requests;
          const auto post = [&](std::size_t short_one, std::size_t short_two) {
            for (std::size_t i = 0; i < n; ++i)
              requests[i] = world.irecv(in[i].data(), i == short_one || i == short_two ? 4 : 8, other,
                                        tag{static_cast<int>(i)});
          };
          const auto send_all = [&] {
            for (std::size_t i = n; i-- > 0;)
              world.send(std::array<int, 2>{static_cast<int>(i), 7}, other, tag{static_cast<int>(i)});
          };
          post(2, 5);
          if (test_all(requests)) return "test_all before anything was sent";
          if (test_any(requests) || !test_some(requests).empty())
            return "something was over before it was sent";
          barrier(world);
          send_all();
          std::array<status, n> statuses;
          const std::string text = thrown([&] { wait_all(requests, statuses); });
          if (text !=
              fmt::format(
                  "wait_all: 2 of 8 requests failed, first request 2: rank {}: recv posted 4 B, got 8 B "
                  "from rank {} tag 2",
                  world.rank().value, other.value))
            return text;
          for (std::size_t i = 0; i < n; ++i)
            if (requests[i].active() || (statuses[i].error == errc::truncated) != (i == 2 || i == 5) ||
                in[i][0] != static_cast<int>(i) || (i != 2 && i != 5 && in[i][1] != 7))
              return fmt::format("request {} after wait_all", i);
          if (wait_any(requests) || !wait_some(requests).empty()) return "inactive requests were waited for";

          post(n, 5);
          send_all();
          if (wait_all(requests, std::nothrow).error != errc::truncated)
            return "wait_all(nothrow) lost the error";

          post(n, n);
          send_all();
          std::set<std::size_t> seen;
          while (const auto one = wait_any(requests)) {
            if (!seen.insert(one->index).second || one->result.label != tag{static_cast<int>(one->index)})
              return "wait_any gave the same twice";
          }
          if (seen.size() != n) return "wait_any missed some";

          post(n, n);
          send_all();
          for (seen.clear(); seen.size() < n;)
            for (const completion& c : wait_some(requests)) seen.insert(c.index);

          post(n, n);
          send_all();
          for (seen.clear(); seen.size() < n;)
            if (const auto one = test_any(requests)) seen.insert(one->index);
          post(n, n);
          send_all();
          while (!test_all(requests)) {
          }
          // Two receives that are both always over: neither starves.
          std::array<int, 2> turns{};
          for (int i = 0; i < 100; ++i)
            for (int t = 0; t < 2; ++t) world.send(i, other, tag{20 + t});
          int a = 0, b = 0;
          std::array<request, 2> pair = {world.irecv(a, other, tag{20}), world.irecv(b, other, tag{21})};
          for (int i = 0; i < 100; ++i) {
            while (!pair[0].test() || !pair[1].test()) {
            }
            const std::size_t which = wait_any(pair)->index;
            ++turns[which];
            pair[which] = world.irecv(which == 0 ? a : b, other, tag{20 + static_cast<int>(which)});
          }
          for (request& r : pair) r.wait();
          for (int t = 0; t < 2; ++t)
            for (int i = turns[static_cast<std::size_t>(t)] + 1; i < 100; ++i)
              world.recv(a, other, tag{20 + t});
          return turns[0] >= 30 && turns[1] >= 30
                     ? ""
                     : fmt::format("wait_any took {} and {}", turns[0], turns[1]);
        })) == "");
}

TEST_CASE("zero bytes without a pointer, the ends of the tags, oneself", "[p2p][threads]") {
  CHECK(complaint(run_ranks(2, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          for (int r = 0; r < 2; ++r) {
            barrier(world);
            const rank with = r == 0 ? world.rank() : rank{1 - world.rank().value};
            for (const int label : {0, 1, std::numeric_limits<int>::max()}) {
              request s = world.isend(nullptr, 0, with, tag{label});
              request t = world.issend(nullptr, 0, with, tag{label});
              for (int i = 0; i < 2; ++i) {
                const status got = world.recv(nullptr, 0, i == 0 ? with : any_source, tag{label});
                if (got.bytes != 0 || got.source != with || got.label != tag{label}) return "wrong status";
              }
              s.wait();
              t.wait();
            }
          }
          if (world.send(std::nothrow, nullptr, 8, rank{0}).error != errc::invalid_argument)
            return "null pointer taken";
          if (world.recv(std::nothrow, nullptr, 0, rank{9}).error != errc::invalid_argument)
            return "rank 9 taken";
          if (world.ssend(std::nothrow, nullptr, 0, rank{0}, tag{-1}).error != errc::invalid_argument)
            return "tag -1 taken";
          if (world.probe(std::nothrow, rank{0}, tag{-2}).error != errc::invalid_argument)
            return "tag -2 taken";
          if (thrown([&] { static_cast<void>(world.iprobe(rank{2})); }) !=
              "iprobe: rank 2 is not in this communicator (0..1)")
            return "iprobe of rank 2";
          return {};
        })) == "");
}
