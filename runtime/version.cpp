#include "base/clock.hpp"

#include <verbena/version.hpp>

namespace verbena {

std::string_view version() noexcept {
  return VERBENA_VERSION;
}

double wall_time() noexcept {
  return static_cast<double>(base::steady_now()) * 1e-9;
}

}  // namespace verbena
