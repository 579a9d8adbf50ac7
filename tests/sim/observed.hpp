// What a run of a program showed, in terms of messages only, and the judgement of it. The judge knows MPI's
// rules and nothing of engines, fabrics or time.
#pragma once

#include "tests/sim/program.hpp"

#include <verbena/error.hpp>

#include <string>
#include <vector>

namespace verbena::sim_tests {

/// One receive, in the order in which its rank posted them.
struct received {
  std::int32_t want_source = -1, want_label = -1;
  std::size_t room = 0;
  bool ended = false;
  bool cancelled = false;  ///< at the end, when nothing moved any more and it was not matched
  errc error = errc::success;
  std::int32_t source = -1, label = -1;
  std::size_t bytes = 0, sent_bytes = 0;
  std::vector<std::byte> data;  ///< the buffer afterwards, with a margin behind it
};

/// One send, in the order in which its rank started them.
struct sent {
  std::uint32_t to = 0;
  std::int32_t label = 0;
  std::size_t size = 0;
  bool ended = false;
  errc error = errc::success;
};

struct observed {
  std::vector<std::vector<received>> receives;  ///< by rank
  std::vector<std::vector<sent>> sends;         ///< by rank
};

inline constexpr std::size_t margin_bytes = 16;
inline constexpr std::byte margin_byte{0xa5};

/// Complaints; none if every completion is one that MPI's matching allows: some order of arrivals, that keeps
/// the order of each sender, makes the naive sequential matcher give exactly these matches. `victim` may have
/// died at any moment: what it sent may be missing from some point on.
std::vector<std::string> judge(const observed& run, std::optional<std::uint32_t> victim);

}  // namespace verbena::sim_tests
