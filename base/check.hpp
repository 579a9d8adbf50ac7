// check(): a broken invariant of our own ends the process with a sentence, in release builds too. It is not
// for bad input from users or peers: that is an errc.
#pragma once

namespace verbena::base {

[[noreturn]] void check_failed(const char* what, const char* file, int line) noexcept;

inline void check(bool holds, const char* what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    check_failed(what, file, line);
}

}  // namespace verbena::base
