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

/// Who may call (MPI 4.0, section 11.6).
enum class thread_level {
  single,    ///< one thread at a time; costs nothing
  multiple,  ///< any thread, at any time: calls on one context take turns, those that wait let others in
};

/// Joins the job on construction and leaves it on destruction; everything made from it must be gone by then.
///
/// Started by rdmarun, or by any launcher with a PMIx server, it is one rank of that job. Started by hand it
/// is a job of one. Started by a launcher that offers no PMIx it throws error{not_in_job}
/// (VERBENA_SINGLETON=1 overrides). One per process in programs; several may live in one process in tests.
///
/// At thread level `multiple` any number of threads may make calls on the context and on what was made from it, except
/// that each request, matched message, region and owned communicator is used by one thread at a time, that collectives on
/// one communicator are called in one order (as on the other ranks), and that construction and destruction of the context
/// itself are alone. Messages that two threads send without agreeing on an order have none.
class VERBENA_API context {
 public:
  explicit context(thread_level threads = thread_level::single);
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
