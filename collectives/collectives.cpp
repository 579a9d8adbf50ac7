#include "collectives/calls.hpp"

namespace verbena {

void barrier(communicator on) {
  collectives::barrier(on.port());
}

void allreduce(communicator on, const void* in, void* out, std::size_t count, element type, reduction how) {
  collectives::allreduce(on.port(), in, out, count, type, how);
}

}  // namespace verbena
