// A rank program of groups_test: communicators and one-sided access between real processes.
//   share_and_split             a bit of everything; prints "right" at rank 0
//   share_and_split COUNT       makes and frees COUNT communicators; prints what that took
//   share_and_split die         rank 1 dies while the others access its memory; they print what they are told
#include <verbena/verbena.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace verbena;

[[noreturn]] void wrong(context& self, const char* what) {
  std::fprintf(stderr, "rank %d: %s\n", self.rank().value, what);
  self.abort(3, what);
}

/// All put a row into everybody's table, in memory of one kind or the other, and count.
void share(context& self, communicator on, std::pmr::memory_resource* pool) {
  const auto n = static_cast<std::size_t>(on.size()), me = static_cast<std::size_t>(on.rank().value);
  constexpr std::size_t row = 20000;
  std::pmr::vector<std::uint64_t> table(n * row + 1, pool);
  const region mine = register_memory(on, table);
  std::vector<remote_key> keys(n);
  for (std::size_t r = 0; r < n; ++r) on.send(mine.key(), rank{static_cast<int>(r)});
  for (std::size_t r = 0; r < n; ++r) on.recv(keys[r], rank{static_cast<int>(r)});
  const std::vector<std::uint64_t> out(row, me + 1);
  for (std::size_t r = 0; r < n; ++r) {
    const rank to{static_cast<int>(r)};
    put_with_flag(on, out.data(), row * 8, to, keys[r], me * row * 8, me);
    for (int i = 0; i < 100; ++i) fetch_add(on, 1, to, keys[r], n * row * 8);
  }
  for (std::size_t r = 0; r < n; ++r)
    if (wait_flag(on, rank{static_cast<int>(r)}) != r) wrong(self, "another word");
  flush_all(on);
  barrier(on);
  for (std::size_t i = 0; i < n * row; ++i)
    if (table[i] != i / row + 1) wrong(self, "another byte");
  if (table[n * row] != 100 * n) wrong(self, "another sum");
  std::vector<std::uint64_t> back(row);
  const rank next{static_cast<int>((me + 1) % n)};
  get(on, back, next, keys[(me + 1) % n], me * row * 8);
  if (back != out) wrong(self, "another byte came back");
  barrier(on);
}

void everything(context& self) {
  const communicator world = self.world();
  const int me = world.rank().value;
  const owned_communicator all = dup(world);
  const owned_communicator half = split(all, me % 2, -me);
  const owned_communicator node = split_node(half);
  std::vector<rank> ends{rank{world.size() - 1}};
  if (world.size() > 1) ends.emplace_back(0);
  const owned_communicator pair = create(world, ends);
  for (const communicator on : {world, communicator(all), communicator(half), communicator(node)}) {
    if (allreduce(on, 1) != on.size()) wrong(self, "another number of ranks");
    share(self, on, std::pmr::new_delete_resource());
    share(self, on, &memory(self));
  }
  if (pair) share(self, pair, &memory(self));
}

void make_many(context& self, long count) {
  const communicator world = self.world();
  const double start = wall_time();
  for (long i = 0; i < count; ++i) {
    const owned_communicator on = dup(world);
    if (i % 1000 == 0 && allreduce(on, 1) != on.size()) wrong(self, "another sum");
  }
  if (self.rank() == rank{0})
    std::printf("%ld communicators in %.1f s, %.2f us each\n", count, wall_time() - start,
                (wall_time() - start) / static_cast<double>(count) * 1e6);
}

void access_the_dying(context& self) {
  std::signal(SIGTERM, SIG_IGN);
  const communicator world = self.world();
  std::vector<std::uint64_t> table(1000);
  const region mine = register_memory(world, table);
  remote_key key;
  if (self.rank() == rank{1}) {
    for (int r = 0; r < world.size(); ++r)
      if (r != 1) world.send(mine.key(), rank{r});
    for (int r = 0; r < world.size(); ++r)
      if (r != 1) wait_flag(world, rank{r});
    std::raise(SIGKILL);
  }
  world.recv(key, rank{1});
  try {
    for (std::uint64_t i = 0;; ++i) {
      if (i == 50) put_with_flag(world, nullptr, 0, rank{1}, key, 0, i);
      fetch_add(world, 1, rank{1}, key, 8);
      put(world, table, rank{1}, key);
    }
  } catch (const error& e) {
    std::printf("told: %s\n", e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  context self;
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (how == "die") {
    access_the_dying(self);
  } else if (!how.empty()) {
    make_many(self, std::strtol(argv[1], nullptr, 10));
  } else {
    everything(self);
    if (self.rank() == rank{0}) std::puts("right");
  }
}
