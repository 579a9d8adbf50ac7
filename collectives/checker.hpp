// Proves schedules by running all ranks' lists symbolically. A value is an expression over (rank, chunk,
// repetition); time is a vector clock. Found are: a result that misses, repeats or (if rank order is
// promised) reorders an operand, or whose expression, and so whose bits, differ between ranks; a block that
// is missing or not where it belongs; a buffer touched at a rank that has none; sends and receives that do
// not match; deadlock, even if every send waits for its receive; a cell that is read or written while
// somebody may still write it; a barrier that lets a rank out before all are in.
//
// One run decides for all timings: steps have no choice (who meets whom depends on the lists alone), so what
// happens before what is the same in every run. It knows no executor, no bytes and no time.
#pragma once

#include "collectives/schedule.hpp"

#include <string>
#include <vector>

namespace verbena::collectives {

enum class purpose : std::uint8_t {
  allreduce,
  barrier,
  broadcast,
  reduce,
  gather,
  scatter,
  allgather,
  alltoall
};

/// One collective call: what each rank runs, how often (segments).
struct checked_call {
  purpose what = purpose::allreduce;
  std::vector<schedule> ranks;
  int repetitions = 1;
  int root = 0;
};

/// Runs the calls one after the other, as ranks do, without waiting in between. Returns an empty string if
/// all is proven, else one sentence about the first fault. At most 64 ranks. `slots`: of node scratch.
/// `in_place`: operand and result of a rank are the same memory, or, where one is a block, it lies in its
/// place among all.
std::string check_schedules(const std::vector<checked_call>& calls, bool in_place,
                            std::uint32_t slots = node_slots);

/// The same for one algorithm at one size.
std::string check_algorithm(purpose what, algorithm of, int size, bool in_place, int repetitions = 3,
                            int root = 0);

}  // namespace verbena::collectives
