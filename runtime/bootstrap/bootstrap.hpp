// The seam between a context and whatever started it: who am I, who else is there, publish and look up small
// values, meet once, give up. Two models: `pmix` (any PMIx server: rdmarun, srun --mpi=pmix, Open MPI's
// mpirun) and `in_process` (tests, simulator: many contexts in one process). Called at join, first contact
// and abort only, never on the message path. It must not know fabrics: values are opaque bytes.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::runtime {

/// What the launcher told this process. Ranks here are job ranks, 0 <= rank < size.
struct job_info {
  std::string name;  ///< the job's namespace; the same on all ranks
  std::uint32_t self = 0;
  std::uint32_t size = 1;
  std::vector<std::uint32_t> local_ranks;  ///< ranks of this node, ascending, self included
  std::string host;                        ///< for messages only
  std::string launched_by;                 ///< "rdmarun", "slurm", "a PMIx server", "nothing (job of one)"
};

class bootstrap {
 public:
  virtual ~bootstrap() = default;

  virtual const job_info& job() const = 0;

  /// The node's shared segment (base/job_page.hpp), or nothing where the launcher offers none; then the
  /// lowest local rank creates one and passes it on through publish/lookup. Called once, before the first
  /// fence.
  virtual base::unique_fd segment() = 0;

  /// Publishes a value under a key of this rank; visible to others after they and we have passed a fence.
  virtual void publish(std::string_view key, std::span<const std::byte> value) = 0;

  /// All ranks of the job meet. Throws error{errc::timed_out} naming what was waited for.
  virtual void fence(base::nanoseconds timeout) = 0;

  /// The value another rank published, or nothing if it did not arrive in time.
  virtual std::optional<std::vector<std::byte>> lookup(std::uint32_t rank, std::string_view key,
                                                       base::nanoseconds timeout) = 0;

  /// Ends the whole job with a status; does not return.
  [[noreturn]] virtual void abort(int status, std::string_view why) = 0;

  /// Leaves the job in good order. Idempotent; no call may follow.
  virtual void leave() = 0;
};

}  // namespace verbena::runtime
