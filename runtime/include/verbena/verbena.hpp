// All of Verbena. `#include <verbena/verbena.hpp>`, link with `pkg-config --libs verbena` or CMake's
// verbena::verbena.
#pragma once

#include <verbena/collectives.hpp>
#include <verbena/communicator.hpp>
#include <verbena/context.hpp>
#include <verbena/error.hpp>
#include <verbena/export.hpp>
#include <verbena/request.hpp>
#include <verbena/types.hpp>

#include <string_view>

namespace verbena {

/// Version of the library that is loaded, "major.minor.patch".
VERBENA_API std::string_view version() noexcept;

/// Seconds on a steady clock (MPI_Wtime).
VERBENA_API double wall_time() noexcept;

}  // namespace verbena
