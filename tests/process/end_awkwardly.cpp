// A rank program of endings_test: ends the job in a way that programs do, one way for each first word. With the second
// word `multiple` at that thread level.
//   unreceived   rank 0 sends small messages that rank 1 never receives; both leave
//   detached     rank 0 detaches a large send, leaves at once; rank 1 receives it late
//   late         rank 1 works on for two seconds after all others have left
//   at_exit      the context is a static object that ends after main
//   dropped      requests go out of scope while pending: receives that nobody answers
//   unmatched    rank 0 starts a large send that nobody receives, and leaves
//   crossed      both ranks detach large sends to each other that nobody receives, and leave
//   twice        a second context in the same process
//   forked       a child of rank 0 returns from main with a copy of the context; the parent goes on
//   large_loop   megabytes go back and forth until rank 1 dies in the middle of one
#include <verbena/verbena.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using verbena::rank;
using verbena::tag;

constexpr std::size_t large = 8U << 20;

void send_unreceived(const verbena::communicator& world) {
  const std::vector<char> some(200);
  if (world.rank() == rank{0})
    for (int i = 0; i < 100; ++i) world.send(some, rank{1}, tag{i});
  verbena::barrier(world);
}

void send_detached(const verbena::communicator& world) {
  static std::vector<int> buffer(large / sizeof(int));  // outlives the context of main
  if (world.rank() == rank{0}) {
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<int>(i);
    world.isend(buffer, rank{1}).detach();
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    world.recv(buffer, rank{0});
    for (std::size_t i = 0; i < buffer.size(); ++i)
      if (buffer[i] != static_cast<int>(i)) std::exit(9);
  }
}

void drop_requests(const verbena::communicator& world) {
  std::vector<char> room(100);
  const rank other{1 - world.rank().value};
  for (int i = 0; i < 50; ++i) verbena::request never = world.irecv(room, other, tag{i});
  verbena::barrier(world);
  // What was cancelled takes nothing away from later receives.
  if (world.rank() == rank{0}) world.send(7, rank{1}, tag{3});
  int got = 0;
  if (world.rank() == rank{1}) world.recv(got, rank{0}, tag{3});
  if (world.rank() == rank{1} && got != 7) std::exit(9);
}

void leave_unmatched(const verbena::communicator& world) {
  const std::vector<char> message(large);
  verbena::barrier(world);
  if (world.rank() == rank{0}) world.isend(message, rank{1});  // its request ends here, and waits
}

void leave_crossed(const verbena::communicator& world) {
  static std::vector<char> message(large);
  for (int i = 0; i < 5; ++i) world.isend(message, rank{1 - world.rank().value}).detach();
}

int join_twice() {
  { verbena::context first; }
  try {
    verbena::context second;
  } catch (const verbena::error& e) {
    std::printf("refused: %s\n", e.what());
    return 0;
  }
  return 9;
}

[[noreturn]] void loop_large(const verbena::communicator& world) {
  std::signal(SIGTERM, SIG_IGN);
  std::vector<char> message(1U << 20);
  if (world.rank() == rank{1}) {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::raise(SIGKILL);
    }).detach();
    while (true) world.recv(message, rank{0});
  }
  try {
    while (true) world.send(message, rank{1});
  } catch (const verbena::error& e) {
    std::printf("told: %s\n", e.what());
    std::fflush(stdout);
    ::_exit(e.reason() == verbena::errc::peer_failed ? 0 : 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (how == "at_exit") {
    static verbena::context job;
    std::atexit([] { std::puts("at exit"); });
    return verbena::allreduce(job.world(), 1) == job.size() ? 0 : 1;
  }
  if (how == "twice") return join_twice();
  const bool multiple = argc > 2 && std::string_view(argv[2]) == "multiple";
  verbena::context job(multiple ? verbena::thread_level::multiple : verbena::thread_level::single);
  const verbena::communicator world = job.world();
  if (how == "unreceived") send_unreceived(world);
  if (how == "detached") send_detached(world);
  if (how == "late" && world.rank() == rank{1}) std::this_thread::sleep_for(std::chrono::seconds(2));
  if (how == "dropped") drop_requests(world);
  if (how == "unmatched") leave_unmatched(world);
  if (how == "crossed") leave_crossed(world);
  if (how == "forked" && world.rank() == rank{0}) {
    const pid_t child = ::fork();
    if (child == 0) return 0;
    int status = -1;
    if (::waitpid(child, &status, 0) != child || status != 0) return 9;
    world.send(5, rank{1});  // what the child ended with was its copy
  } else if (how == "forked") {
    int five = 0;
    world.recv(five, rank{0});
    if (five != 5) return 9;
  }
  if (how == "large_loop") loop_large(world);
}
