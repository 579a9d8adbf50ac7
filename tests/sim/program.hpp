// Random programs for simulated ranks: a list of calls for each, over communicators, collectives and windows that the
// program names by number. All that is random comes from one seed, so the seed is the program. It knows what a call
// means to the others (who is in which communicator, when), and must not know the engine.
#pragma once

#include "base/settings.hpp"
#include "transport/sim/options.hpp"
#include "transport/sim/random.hpp"

#include <verbena/reduction.hpp>
#include <verbena/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::sim_tests {

using transport::sim::random_source;

enum class call : std::uint8_t {
  // sending
  send,
  ssend,
  isend,
  issend,
  send_init,
  // receiving
  recv,
  irecv,
  recv_init,
  probe,
  iprobe,
  mprobe,
  improbe,
  // both
  sendrecv,
  sendrecv_replace,
  // requests
  wait,
  wait_any,
  wait_some,
  wait_all,
  test,
  test_any,
  test_some,
  test_all,
  cancel,
  // communicators
  dup,
  split,
  create,
  free,
  // collectives
  barrier,
  broadcast,
  reduce,
  allreduce,
  gather,
  scatter,
  allgather,
  alltoall,
  // one-sided
  register_memory,
  put,
  put_with_flag,
  get,
  fetch_add,
  compare_swap,
  flush,
  wait_flag,
  deregister,
  count_
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(call::count_)> call_names = {
    "send",      "ssend",     "isend",     "issend",   "send_init", "recv",         "irecv",
    "recv_init", "probe",     "iprobe",    "mprobe",   "improbe",   "sendrecv",     "sendrecv_replace",
    "wait",      "wait_any",  "wait_some", "wait_all", "test",      "test_any",     "test_some",
    "test_all",  "cancel",    "dup",       "split",    "create",    "free",         "barrier",
    "broadcast", "reduce",    "allreduce", "gather",   "scatter",   "allgather",    "alltoall",
    "register",  "put",       "put_flag",  "get",      "fetch_add", "compare_swap", "flush",
    "wait_flag", "deregister"};

constexpr bool is_collective(call what) noexcept {
  return what >= call::barrier && what <= call::alltoall;
}
constexpr bool is_atomic(call what) noexcept {
  return what == call::fetch_add || what == call::compare_swap;
}

/// One call at one rank. What a field means depends on the call; ranks are those of the communicator.
struct action {
  call what = call::isend;
  std::uint32_t on = 0;       ///< communicator
  std::int32_t partner = -1;  ///< to whom, from whom (-1: any), or whose memory
  std::int32_t label = 0;     ///< receiving: -1 any
  std::size_t size = 0;       ///< of the message, the buffer, or the access
  std::int32_t other = -1;    ///< sendrecv: from whom
  std::int32_t other_label = 0;
  std::size_t other_size = 0;
  std::size_t offset = 0;  ///< one-sided: in the region
  std::uint32_t item = 0;  ///< making, collective or window: its number
  std::uint32_t pick = 0;  ///< which request; any number
  bool started = false;    ///< the form that returns a request, where there are two
  bool throwing = false;   ///< the form that throws, where there are two
};

/// A communicator, known from the program alone.
struct group {
  std::vector<std::uint32_t> members;  ///< job ranks, in order
  bool loose =
      false;  ///< only calls that never wait for another rank are made on it; it is freed without a word
  std::optional<std::int32_t> rank_of(std::uint32_t job_rank) const noexcept;
};

/// A call that makes communicators out of one.
struct making {
  call what = call::dup;
  std::uint32_t on = 0;
  std::vector<int> color, key;                     ///< split: by rank
  std::vector<std::vector<int>> lists;             ///< create: by rank
  std::vector<std::optional<std::uint32_t>> made;  ///< by rank of `on`: the group it is in afterwards
};

enum class form : std::uint8_t { blocking, started, persistent };

struct collective {
  call what = call::barrier;
  form as = form::started;
  std::uint32_t on = 0;
  std::int32_t root = 0;
  std::size_t count = 0;  ///< bytes of a block, or elements of a reduction
  reduction how = reduction::sum;
  bool custom = false;  ///< by the operator of collective_model.hpp, which does not commute
  bool in_place = false;
  std::size_t shift = 0;  ///< buffers of bytes begin at such an address
};

/// Memory that every member of a group registers, and what lies where in it: two words for atomics, then one slice for
/// each member to write in.
struct window {
  std::uint32_t on = 0;
  std::size_t slice = 0;
  static constexpr std::size_t words = 16;
  std::size_t begin(std::int32_t origin) const noexcept {
    return words + static_cast<std::size_t>(origin) * slice;
  }
};

/// A seed's worth of trouble: the world, the faults, and what each rank does in it.
struct program {
  std::uint64_t seed = 0;
  transport::sim::world_options world;
  base::settings settings;
  std::vector<group> groups;  ///< 0: world, then each rank's self, then those that are made
  std::vector<making> makings;
  std::vector<collective> collectives;
  std::vector<window> windows;
  std::vector<std::vector<action>> of;  ///< by job rank
  std::optional<std::uint32_t> victim;  ///< this rank dies ...
  std::int64_t death_ns = 0;            ///< ... then,
  std::uint64_t death_put = 0;          ///< or, unless 0, when so many puts have been posted
  std::string summary() const;
};

program make_program(std::uint64_t seed);

/// World and settings: what way there is, and what goes wrong on it.
void make_surroundings(program& p, random_source& random);

template <class Value, std::size_t Count>
Value one_of(random_source& random, const Value (&values)[Count]) {
  return values[random.below(Count)];
}
inline bool chance(random_source& random, std::uint32_t one_in) {
  return random.below(one_in) == 0;
}

/// A number that depends on all of these.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0,
                              std::uint64_t d = 0) noexcept {
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t word : {a, b, c, d}) {
    sum = (sum ^ word) * 0xbf58476d1ce4e5b9ULL;
    sum ^= sum >> 29;
  }
  return sum;
}

/// Byte `at` of what `name` (mixed) stands for.
constexpr std::byte byte_of(std::uint64_t name, std::size_t at) noexcept {
  const std::uint64_t word = (name + at) * 0x94d049bb133111ebULL;
  return static_cast<std::byte>(word >> 56 ^ word >> 27);
}

/// Names message number `sequence` from rank `from` to rank `to` of a group.
constexpr std::uint64_t message_name(std::uint32_t in, std::uint32_t from, std::uint32_t to,
                                     std::uint64_t sequence) noexcept {
  return mixed(in, from, to, sequence);
}

}  // namespace verbena::sim_tests
