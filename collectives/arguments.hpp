// Checks of a collective call's arguments: what can be seen at one rank. Each throws error{invalid_argument},
// one sentence that begins with the call's name.
#pragma once

#include <verbena/types.hpp>

#include <cstddef>
#include <string_view>

namespace verbena::collectives {

[[noreturn]] void refuse_argument(std::string_view call, std::string_view why);

/// A rank of a communicator of `size`.
void check_root(std::string_view call, rank root, int size);

/// A buffer of `blocks` times `bytes` bytes that may be null only if it is empty. `what`: "input", "output".
void check_buffer(std::string_view call, std::string_view what, const void* data, std::size_t bytes,
                  std::size_t blocks);

/// No byte is in both, unless the input begins at `in_place_at`.
void check_overlap(std::string_view call, const void* in, std::size_t in_bytes, const void* out,
                   std::size_t out_bytes, const void* in_place_at);

}  // namespace verbena::collectives
