// Which Verbena this is, and what time it thinks it is.
#pragma once

#include <verbena/export.hpp>

#include <string_view>

namespace verbena {

/// Version of the library that is loaded, "major.minor.patch". Any thread.
VERBENA_API std::string_view version() noexcept;

/// Seconds on a steady clock (MPI_Wtime, MPI 4.0, section 9.6). Any thread.
VERBENA_API double wall_time() noexcept;

}  // namespace verbena
