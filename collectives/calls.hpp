// The collective calls on a port: what the public functions do once they know it. For them and for tests.
#pragma once

#include "runtime/collective_port.hpp"

#include <verbena/collectives.hpp>

#include <cstddef>

namespace verbena::collectives {

void barrier(runtime::collective_port& port);
void allreduce(runtime::collective_port& port, const void* in, void* out, std::size_t count, element type,
               reduction how);

}  // namespace verbena::collectives
