// What the instruction guard runs under callgrind: two contexts in one process over the real shared-memory
// fabric, N warm 8-byte messages from one to the other, and N more in windows of started sends and receives.
// The two sides are functions of their own, so that callgrind can be told to count inside one of them only.
#include "runtime/bootstrap/in_process.hpp"
#include "runtime/context_state.hpp"

#include <verbena/verbena.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>

extern "C" {
[[gnu::noinline]] void counted_send(const verbena::communicator* on, const std::uint64_t* value) {
  on->send(value, sizeof *value, verbena::rank{1}, verbena::tag{3});
}
[[gnu::noinline]] void counted_receive(const verbena::communicator* on, std::uint64_t* value) {
  on->recv(value, sizeof *value, verbena::rank{0}, verbena::tag{3});
}
[[gnu::noinline]] void counted_isends(const verbena::communicator* on, const std::uint64_t* values,
                                      verbena::request* requests, int window) {
  for (int i = 0; i < window; ++i)
    requests[i] = on->isend(&values[i], sizeof *values, verbena::rank{1}, verbena::tag{3});
  verbena::wait_all({requests, static_cast<std::size_t>(window)});
}
[[gnu::noinline]] void counted_irecvs(const verbena::communicator* on, std::uint64_t* values,
                                      verbena::request* requests, int window) {
  for (int i = 0; i < window; ++i)
    requests[i] = on->irecv(&values[i], sizeof *values, verbena::rank{0}, verbena::tag{3});
}
[[gnu::noinline]] void counted_waits(verbena::request* requests, int window) {
  verbena::wait_all({requests, static_cast<std::size_t>(window)});
}
}

int main(int count, char** arguments) {
  using namespace verbena;
  const long messages = std::atol(arguments[1]);
  runtime::in_process_job job(2, true);
  const base::settings settings;
  context sender(runtime::context_state::join(job.member(0), settings));
  context receiver(runtime::context_state::join(job.member(1), settings));
  const communicator from = sender.world(), to = receiver.world();
  std::uint64_t value = 0;
  // Warm up through the same calls, outside of the counted functions: rings made, grown and hot.
  for (std::uint64_t i = 0; i < 1000; ++i) {
    from.send(i, rank{1}, tag{3});
    to.recv(value, rank{0}, tag{3});
  }
  constexpr std::size_t most = 64;
  const int window =
      count > 2 ? std::atoi(arguments[2]) : most;  // not a constant: no copies of the functions below for it
  std::array<std::uint64_t, most> out{}, in{};
  std::array<request, most> sends, receives;
  const auto play_windows = [&](long total) {
    for (long i = 0; i < total / window; ++i) {
      for (std::size_t k = 0; k < most; ++k) out[k] = static_cast<std::uint64_t>(i) * most + k;
      counted_irecvs(&to, in.data(), receives.data(), window);
      counted_isends(&from, out.data(), sends.data(), window);
      counted_waits(receives.data(), window);
      if (in != out) return false;
    }
    return true;
  };
  if (!play_windows(1280) || !play_windows(messages)) return 1;
  for (long i = 0; i < messages; ++i) {
    const auto sent = static_cast<std::uint64_t>(i);
    counted_send(&from, &sent);
    counted_receive(&to, &value);
    if (value != sent) return 1;
  }
  return 0;
}
