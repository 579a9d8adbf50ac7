#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace verbena::base {

void check_failed(const char* what, const char* file, int line) noexcept {
  std::fprintf(stderr, "verbena: broken invariant: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace verbena::base
