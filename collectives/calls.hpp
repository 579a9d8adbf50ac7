// The collective calls on a port: arguments checked, algorithm chosen, ready to be run, started or kept. For
// the public functions and for tests. Who may call what, and the shapes of the buffers, stand in the public
// headers.
#pragma once

#include "collectives/communicator_state.hpp"

#include <verbena/reduction.hpp>

#include <cstddef>

namespace verbena::collectives {

/// A reduction's operator, however the caller named it.
class operation_by {
 public:
  operation_by(element type, reduction how) noexcept : type_(type), how_(how) {}
  operation_by(const custom_reduction& users) noexcept : users_(&users) {}

  struct found {
    combiner combine;
    kernel plain = nullptr;
    operator_traits traits;
    std::size_t alignment = 1;
    unsigned digest = 0;  ///< of type and operator
  };
  /// Throws error{invalid_argument} in the name of `call` if there is no such operator.
  found find(const communicator_state& state, std::string_view call) const;

  // Of our own operators, for the short way.
  bool known() const noexcept { return users_ == nullptr && is_element(type_) && is_reduction(how_); }
  element type() const noexcept { return type_; }
  reduction how() const noexcept { return how_; }
  static constexpr unsigned digest_of(element type, reduction how) noexcept {
    return static_cast<unsigned>(type) * 12 + static_cast<unsigned>(how);
  }

 private:
  element type_{};
  reduction how_{};
  const custom_reduction* users_ = nullptr;
};

prepared prepare_barrier(communicator_state& state);
prepared prepare_broadcast(communicator_state& state, void* data, std::size_t bytes, rank root);
prepared prepare_reduce(communicator_state& state, const void* in, void* out, std::size_t count,
                        const operation_by& how, rank root);
prepared prepare_allreduce(communicator_state& state, const void* in, void* out, std::size_t count,
                           const operation_by& how);
prepared prepare_gather(communicator_state& state, const void* in, void* out, std::size_t block_bytes,
                        rank root);
prepared prepare_scatter(communicator_state& state, const void* in, void* out, std::size_t block_bytes,
                         rank root);
prepared prepare_allgather(communicator_state& state, const void* in, void* out, std::size_t block_bytes);
prepared prepare_alltoall(communicator_state& state, const void* in, void* out, std::size_t block_bytes);

/// The two blocking calls that have a short way of their own (line_exchange.hpp).
void barrier(runtime::collective_port& port);
void allreduce(runtime::collective_port& port, const void* in, void* out, std::size_t count,
               const operation_by& how);
inline void allreduce(runtime::collective_port& port, const void* in, void* out, std::size_t count,
                      element type, reduction how) {
  allreduce(port, in, out, count, operation_by(type, how));
}

}  // namespace verbena::collectives
