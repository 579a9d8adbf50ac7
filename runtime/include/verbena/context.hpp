// A context: this process's membership in a job.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbena {

namespace runtime {
class context_state;
}

/// Joins the job on construction and leaves it on destruction; everything made from it must be gone by then.
///
/// Started by rdmarun, or by any launcher with a PMIx server, it is one rank of that job. Started by hand it
/// is a job of one. Started by a launcher that offers no PMIx it throws error{not_in_job}
/// (VERBENA_SINGLETON=1 overrides). One per process in programs; several may live in one process in tests.
/// One thread at a time.
class VERBENA_API context {
 public:
  context();
  /// For tests and simulations: a state made elsewhere (runtime/context_state.hpp).
  explicit context(std::unique_ptr<runtime::context_state> state) noexcept;
  context(context&&) noexcept;
  context& operator=(context&&) noexcept;
  ~context();

  /// All ranks of the job.
  communicator world() const noexcept;
  /// This rank alone (MPI_COMM_SELF).
  communicator self() const noexcept;
  verbena::rank rank() const noexcept { return world().rank(); }
  int size() const noexcept { return world().size(); }
  /// Ranks of this node, as world ranks, ascending; this rank is among them.
  std::vector<verbena::rank> node_ranks() const;

  /// Moves what can be moved; never blocks. Blocking calls do this by themselves.
  void progress();

  /// Ends the whole job with `status` (1..255); does not return.
  [[noreturn]] void abort(int status, std::string_view why = {});

  /// Name and value of each counter of this context (messages sent, bytes, ...), in table order.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;

  runtime::context_state& state() const noexcept { return *state_; }

 private:
  std::unique_ptr<runtime::context_state> state_;
};

}  // namespace verbena
