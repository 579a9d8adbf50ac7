// Messages from and into memory with gaps: every call, every protocol, against naive packing and unpacking.
#include "runtime/layout_access.hpp"
#include "tests/unit/random_layout.hpp"
#include "tests/unit/simulated_job.hpp"
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <string>

using namespace verbena;
using runtime::layout_access;
using runtime::operation;
using runtime::peer;
using runtime::user_memory;
using tests::complaint;
using tests::laid_out;
using tests::layout_kind;
using tests::run_ranks;

namespace {

/// One message, as both sides make it up from the same seed.
struct exchange {
  laid_out from, to;
  std::vector<std::byte> message, arrives;  ///< what is sent, what fits
  bool truncated;
};

exchange make_exchange(std::mt19937_64& random, std::size_t bytes) {
  constexpr layout_kind sources[] = {layout_kind::in_a_row, layout_kind::forwards, layout_kind::backwards,
                                     layout_kind::listed, layout_kind::overlapping};
  constexpr layout_kind rooms[] = {layout_kind::in_a_row, layout_kind::forwards, layout_kind::backwards,
                                   layout_kind::listed};
  laid_out from = tests::random_layout(random, sources[random() % std::size(sources)], bytes);
  const bool shorter = from.size() != 0 && random() % 8 == 0;
  const std::size_t room =
      shorter ? random() % from.size() : from.size() + (random() % 4 == 0 ? random() % 50 : 0);
  laid_out to = tests::random_layout(random, rooms[random() % std::size(rooms)], room);
  from.fill(random());
  std::vector<std::byte> message = from.message();
  std::vector<std::byte> arrives = message;
  const bool truncated = to.size() < message.size();
  arrives.resize(std::min(arrives.size(), to.size()));
  return {std::move(from), std::move(to), std::move(message), std::move(arrives), truncated};
}

/// What is wrong with a receive that has ended, or nothing. Of a message too long the beginning may be there, or nothing.
std::string complaint_about(exchange& x, const status& got, int i) {
  if (got.error != (x.truncated ? errc::truncated : errc::success))
    return fmt::format("message {} of {} B into {} B: error {}", i, x.message.size(), x.to.size(),
                       static_cast<int>(got.error));
  if (x.to.holds(x.arrives) && got.bytes == x.arrives.size()) return {};
  if (x.truncated && x.to.holds({}) && got.bytes == 0) return {};
  return fmt::format("message {} of {} B into {} B: wrong bytes ({} said to be there)", i, x.message.size(),
                     x.to.size(), got.bytes);
}

constexpr std::size_t largest[] = {0, 1, 8, 40, 41, 300, 4000, 9000, 20'000, 70'000, 300'000, 1'200'000};

}  // namespace

TEST_CASE("random layouts on both sides arrive as packing and unpacking by hand would have it",
          "[layouts][threads]") {
  base::settings settings;
  settings.single_copy = GENERATE("auto", "off");
  settings.unexpected_budget = GENERATE(4U << 20, 3000U, 0U);
#if defined(__SANITIZE_THREAD__)  // which makes the walk along the blocks a hundred times as long
  constexpr int messages = 40;
#else
  constexpr int messages = 400;
#endif
  CHECK(complaint(run_ranks(2, settings, [](context& self) -> std::string {
          const communicator world = self.world();
          const bool sends = world.rank() == rank{0};
          const rank other{1 - world.rank().value};
          std::mt19937_64 random(7);
          for (int i = 0; i < messages; ++i) {
            const std::size_t most = largest[random() % std::size(largest)];
            exchange x = make_exchange(random, most == 0 ? 0 : random() % most + 1);
            const layout &from = x.from.form(), &to = x.to.form();
            const tag label{i % 5};
            const auto way = random() % 6, how = random() % 6;
            const bool late = random() % 4 == 0;
            if (sends) {
              if (way == 0) world.send(x.from.base(), from, other, label);
              if (way == 1) world.ssend(x.from.base(), from, other, label);
              if (way == 2) world.isend(x.from.base(), from, other, label).wait();
              if (way == 3) world.issend(x.from.base(), from, other, label).wait();
              if (way == 4) world.send_init(x.from.base(), from, other, label).start().wait();
              if (way == 5)
                world.sendrecv(x.from.base(), from, other, label, nullptr, layout(), other, tag{9});
              if (x.from.message() != x.message) return fmt::format("message {} changed at its sender", i);
              continue;
            }
            if (way == 5) world.isend(nullptr, 0, other, tag{9}).detach();
            if (late && world.probe(other, label).bytes != x.message.size())
              return fmt::format("probe of message {}", i);
            status got;
            const auto quietly = [&](auto&& call) {
              try {
                got = call();
              } catch (const error& e) {
                got = {.bytes = 0, .error = e.reason()};
                if (e.reason() == errc::truncated && x.to.holds(x.arrives)) got.bytes = x.arrives.size();
              }
            };
            if (how == 0) quietly([&] { return world.recv(x.to.base(), to, other, label); });
            if (how == 1) got = world.recv(std::nothrow, x.to.base(), to, any_source, label);
            if (how == 2) got = world.irecv(x.to.base(), to, other, label).wait(std::nothrow);
            if (how == 3) got = world.mprobe(other, label).recv(std::nothrow, x.to.base(), to);
            if (how == 4) got = world.recv_init(x.to.base(), to, other, label).start().wait(std::nothrow);
            if (how == 5) {
              request mine = world.irecv(nullptr, 0, world.rank(), tag{11});
              got = world.sendrecv(std::nothrow, nullptr, layout(), world.rank(), tag{11}, x.to.base(), to,
                                   other, label);
              mine.wait();
            }
            if (const std::string why = complaint_about(x, got, i); !why.empty()) return why;
          }
          return {};
        })) == "");
}

TEST_CASE("many messages with gaps under way at once, the layouts gone", "[layouts][threads]") {
  base::settings settings;
  settings.unexpected_budget = GENERATE(4U << 20, 3000U);
  CHECK(complaint(run_ranks(2, settings, [](context& self) -> std::string {
          const communicator world = self.world();
          const bool sends = world.rank() == rank{0};
          const rank other{1 - world.rank().value};
          std::mt19937_64 random(11);
          for (int round = 0; round < 10; ++round) {
            std::vector<exchange> all;
            for (int i = 0; i < 24; ++i)
              all.push_back(
                  make_exchange(random, random() % largest[1 + random() % (std::size(largest) - 1)]));
            std::vector<request> requests;
            for (std::size_t i = 0; i < all.size(); ++i) {
              exchange& x = all[i];
              const tag label{static_cast<int>(i)};
              // Copies that go at once: the operation has its own.
              requests.push_back(sends ? world.isend(x.from.base(), layout(x.from.form()), other, label)
                                       : world.irecv(x.to.base(), layout(x.to.form()), other, label));
            }
            std::vector<status> statuses(all.size());
            wait_all(requests, std::nothrow, statuses);
            for (std::size_t i = 0; i < all.size(); ++i) {
              const std::string why = sends ? "" : complaint_about(all[i], statuses[i], static_cast<int>(i));
              if (!why.empty()) return why;
            }
            barrier(world);
          }
          return {};
        })) == "");
}

TEST_CASE("a persistent pair with gaps outlives its layouts", "[layouts][threads]") {
  CHECK(complaint(run_ranks(1, {}, [](context& self) -> std::string {
          const communicator world = self.world();
          std::vector<int> matrix(12), column(24, -1);
          persistent_request to, from;
          {
            const layout third = layout::strided(3, 4, 16);
            const layout every_second = layout::indexed({{0, 4}, {8, 4}, {16, 4}});
            to = world.send_init(&matrix[3], third, rank{0});
            from = world.recv_init(column.data(), every_second, rank{0});
          }
          for (int i = 0; i < 3; ++i) {
            for (int& value : matrix) value = 100 * i + static_cast<int>(&value - matrix.data());
            request receiving = from.start();
            to.start().wait();
            receiving.wait();
            for (int k = 0; k < 3; ++k)
              if (column[static_cast<std::size_t>(2 * k)] != 100 * i + 3 + 4 * k ||
                  column[static_cast<std::size_t>(2 * k + 1)] != -1)
                return fmt::format("start {}, row {}", i, k);
          }
          return {};
        })) == "");
}

TEST_CASE("calls refuse layouts they cannot use", "[layouts][threads]") {
  CHECK(
      complaint(run_ranks(1, {}, [](context& self) -> std::string {
        const communicator world = self.world();
        std::array<std::byte, 64> memory{};
        const layout twice = layout::strided(2, 8, 4), gaps = layout::strided(2, 8, 16);
        const errc wrong = errc::invalid_argument;
        if (world.recv(std::nothrow, memory.data(), twice).error != wrong)
          return "recv into overlapping blocks";
        if (world.irecv(std::nothrow, memory.data(), twice).wait(std::nothrow).error != wrong) return "irecv";
        if (world.recv_init(std::nothrow, memory.data(), twice).reason() != wrong) return "recv_init";
        if (world.sendrecv(std::nothrow, memory.data(), gaps, rank{0}, tag{0}, memory.data(), twice).error !=
            wrong)
          return "sendrecv";
        if (world.send(std::nothrow, nullptr, gaps, rank{0}).error != wrong) return "null pointer";
        if (world.isend(std::nothrow, memory.data(), gaps, rank{4}).wait(std::nothrow).error != wrong)
          return "rank 4";
        if (world.ssend(std::nothrow, memory.data(), gaps, rank{0}, tag{-1}).error != wrong) return "tag -1";
        // What was refused left nothing: this is the only message there is.
        request sent = world.isend(memory.data(), twice, rank{0}, tag{3});
        matched_message found = world.mprobe();
        if (found.bytes() != 16 || found.label() != tag{3}) return "something was sent";
        if (found.irecv(std::nothrow, memory.data(), twice).wait(std::nothrow).error != wrong)
          return "matched irecv";
        if (!found || found.recv(std::nothrow, memory.data(), gaps).error != errc::success)
          return "the message is gone after a refused recv";
        sent.wait();
        return {};
      })) == "");
}

TEST_CASE("every protocol moves memory with gaps, whatever the fabric can do", "[layouts][sim]") {
  const auto bulk =
      GENERATE(transport::bulk_method::put, transport::bulk_method::together, transport::bulk_method::stream);
  const std::uint64_t seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{12}));
  std::mt19937_64 random(seed);
  auto options = tests::world_of(bulk, 100 + random() % 300, 100 + random() % 1000);
  options.seed = seed;
  options.again_ppm = seed % 2 == 0 ? 0 : 300'000;
  options.ragged_polls = seed % 4 == 1;
  base::settings settings;
  if (seed % 3 == 0) settings.unexpected_budget = 500;
  tests::simulated_job job(options, settings);
  for (int round = 0; round < 6; ++round) {
    std::vector<exchange> all;
    for (int i = 0; i < 10; ++i) all.push_back(make_exchange(random, random() % (i % 2 == 0 ? 200 : 6000)));
    std::deque<operation> sends(all.size()), receives(all.size());
    const auto post = [&](std::size_t i, bool send) {
      exchange& x = all[i];
      const tag label{static_cast<int>(i)};
      if (send) {
        const user_memory m = layout_access::source("test", x.from.base(), x.from.form());
        job.contexts[0]->engine().send(sends[i], job.contexts[0]->world().way_to(rank{1}), m.data, m.bytes,
                                       label, random() % 3 == 0, m.form);
      } else {
        const user_memory m = layout_access::room("test", x.to.base(), x.to.form());
        runtime::communicator_state& on = job.contexts[1]->world();
        const peer source = on.peer_of(rank{0});
        job.contexts[1]->engine().receive(receives[i], &source, {on.context(), rank{0}, label}, m.data,
                                          m.bytes, m.form);
      }
    };
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (const bool send : {round % 2 == 0, round % 2 != 0}) {  // receives first, or sends
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        post(i, send);
        if (random() % 3 == 0) job.contexts[random() % 2]->progress(job.world.now());
      }
      job.run();
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("seed " << seed << ", round " << round);
      REQUIRE(sends[i].done());
      REQUIRE(receives[i].done());
      CHECK(sends[i].result.error == errc::success);
      const status got{.bytes = receives[i].result.bytes, .error = receives[i].result.error};
      CHECK(complaint_about(all[i], got, static_cast<int>(i)) == "");
    }
    CHECK(job.contexts[0]->engine().nothing_pending());
    CHECK(job.contexts[1]->engine().nothing_pending());
    CHECK(job.contexts[0]->engine().counts().malformed + job.contexts[1]->engine().counts().malformed == 0);
  }
}
