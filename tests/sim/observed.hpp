// What a run of a program showed of messages in one communicator, and the judgement of it. The judge knows MPI's rules
// and nothing of engines, fabrics or time.
#pragma once

#include "tests/sim/program.hpp"

#include <verbena/error.hpp>

#include <optional>
#include <string>
#include <vector>

namespace verbena::sim_tests {

/// One receive, in the order in which its rank posted them. One that was taken back while others still sent is left out:
/// it is as if it had never been.
struct received {
  std::int32_t want_source = -1, want_label = -1;
  std::size_t room = 0;
  bool ended = false;
  bool cancelled = false;  ///< at the end, when nothing moved any more and it was not matched
  bool withdrawn = false;  ///< before
  bool unknown = false;    ///< half of a sendrecv that failed: what became of it was not said
  errc error = errc::success;
  std::int32_t source = -1, label = -1;
  std::size_t bytes = 0;
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
  std::uint32_t group = 0;                      ///< its number: names the messages
  std::vector<std::vector<received>> receives;  ///< by rank
  std::vector<std::vector<sent>> sends;         ///< by rank
};

/// Whose deeds are not judged: by rank.
struct excuses {
  std::optional<std::uint32_t>
      victim;                ///< died at some moment: what it sent may be missing from some point on
  std::vector<bool> absent;  ///< lost the communicator, or hangs, because of that death; empty: nobody
};

inline constexpr std::size_t margin_bytes = 16;
inline constexpr std::byte margin_byte{0xa5};

/// Complaints; none if every completion is one that MPI's matching allows: some order of arrivals, that keeps
/// the order of each sender, makes the naive sequential matcher give exactly these matches.
std::vector<std::string> judge(const observed& run, const excuses& excused);

}  // namespace verbena::sim_tests
