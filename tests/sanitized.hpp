// Whether this build watches its memory or its threads: then tests whose length is for the release build take fewer rounds,
// and limits of time and memory are not judged.
#pragma once

namespace verbena::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace verbena::tests
