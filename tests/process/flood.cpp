// A million small messages to a receiver that does not listen. `flood blocking`: four ranks; rank 0 sends to
// rank 1, which sleeps three seconds first, while ranks 2 and 3 play ping-pong. `flood started`: rank 0
// starts all sends at once, and rank 1 waits for a message of another tag behind them. Prints one line of
// figures; complains and ends with 1 if a message is lost or out of order.
#include <verbena/verbena.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace verbena;
using steady = std::chrono::steady_clock;

namespace {

constexpr std::uint64_t count = 1'000'000;
constexpr std::uint64_t early = 10'000;
constexpr rank sender{0}, receiver{1};
constexpr tag flood{5}, other{9};

double seconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}

/// Proportional set size in KiB: what this process costs, its part of shared memory included.
long proportional_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("Pss:", 0) == 0) return std::stol(line.substr(4));
  return -1;
}

[[noreturn]] void complain(const char* what, std::uint64_t got, std::uint64_t wanted) {
  std::fprintf(stderr, "%s: got %llu, wanted %llu\n", what, static_cast<unsigned long long>(got),
               static_cast<unsigned long long>(wanted));
  std::exit(1);
}

void warm_up(const communicator& world, rank with) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    std::uint64_t back = 0;
    if (world.rank() < with) {
      world.send(i, with, flood);
      world.recv(back, with, flood);
    } else {
      world.recv(back, with, flood);
      world.send(back, with, flood);
    }
    if (back != i) complain("warm-up", back, i);
  }
}

void receive_flood(const communicator& world, long& most_kib) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    world.recv(value, sender, flood);
    if (value != i) complain("flood", value, i);
    if (i % 100'000 == 0) most_kib = std::max(most_kib, proportional_kib());
  }
}

/// The same, some receives at a time.
void receive_flood_in_windows(const communicator& world, long& most_kib) {
  constexpr std::uint64_t window = 100;
  std::vector<std::uint64_t> values(window);
  std::vector<request> requests(window);
  for (std::uint64_t first = 0; first < count; first += window) {
    for (std::uint64_t i = 0; i < window; ++i)
      requests[i] = world.irecv(&values[i], sizeof values[i], sender, flood);
    for (std::uint64_t i = 0; i < window; ++i) {
      requests[i].wait();
      if (values[i] != first + i) complain("flood", values[i], first + i);
    }
    if (first % 100'000 == 0) most_kib = std::max(most_kib, proportional_kib());
  }
}

void blocking(const communicator& world) {
  const int self = world.rank().value;
  if (self >= 2) {  // the others
    const rank with{5 - self};
    double longest = 0;
    std::uint64_t rounds = 0;
    const auto start = steady::now();
    for (bool more = true; more; ++rounds) {
      const auto before = steady::now();
      if (self == 2) {
        more = seconds_since(start) < 2.5;
        world.send(more, with);
        world.recv(more, with);
      } else {
        world.recv(more, with);
        world.send(more, with);
      }
      longest = std::max(longest, seconds_since(before));
    }
    if (self == 2)
      std::printf("bystander: rounds %llu longest_ms %.1f\n", static_cast<unsigned long long>(rounds),
                  longest * 1e3);
    return;
  }
  warm_up(world, self == 0 ? receiver : sender);
  const long before = proportional_kib();
  long most = before;
  const auto start = steady::now();
  if (world.rank() == sender) {
    double early_s = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      world.send(i, receiver, flood);
      if (i + 1 == early) early_s = seconds_since(start);
      if (i % 100'000 == 0 || i == early) most = std::max(most, proportional_kib());
    }
    most = std::max(most, proportional_kib());
    std::printf("sender: first_s %.2f all_s %.2f grown_kib %ld\n", early_s, seconds_since(start),
                most - before);
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    receive_flood(world, most);
    std::printf("receiver: grown_kib %ld\n", std::max(most, proportional_kib()) - before);
  }
}

void started(const communicator& world) {
  if (world.rank() == sender) {
    warm_up(world, receiver);
    std::vector<std::uint64_t> values(count + 1);
    std::vector<request> requests;
    requests.reserve(count + 1);
    for (std::uint64_t i = 0; i <= count; ++i) {
      values[i] = i;
      requests.push_back(world.isend(&values[i], sizeof values[i], receiver, i < count ? flood : other));
    }
    for (request& r : requests) r.wait();
    return;
  }
  warm_up(world, sender);
  const long before = proportional_kib();
  std::uint64_t value = 0;
  world.recv(value, sender, other);
  if (value != count) complain("the message of another tag", value, count);
  long most = proportional_kib();
  receive_flood_in_windows(world, most);
  std::printf("receiver: grown_kib %ld\n", most - before);
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  const context self;
  const bool starts = count_of_arguments > 1 && std::string(arguments[1]) == "started";
  if (starts)
    started(self.world());
  else
    blocking(self.world());
  return 0;
}
