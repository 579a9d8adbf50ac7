#include "collectives/arguments.hpp"

#include <fmt/format.h>
#include <verbena/error.hpp>

#include <cstdint>

namespace verbena::collectives {

void refuse_argument(std::string_view call, std::string_view why) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", call, why));
}

void check_root(std::string_view call, rank root, int size) {
  if (root.value < 0 || root.value >= size)
    refuse_argument(call, fmt::format("root {} is no rank of this communicator of {}", root.value, size));
}

void check_buffer(std::string_view call, std::string_view what, const void* data, std::size_t bytes,
                  std::size_t blocks) {
  if (bytes == 0) return;
  if (data == nullptr)
    refuse_argument(call, fmt::format("the {} is a null pointer although the count is not 0", what));
  if (bytes > PTRDIFF_MAX / blocks) refuse_argument(call, "the count is larger than memory");
}

void check_overlap(std::string_view call, const void* in, std::size_t in_bytes, const void* out,
                   std::size_t out_bytes, const void* in_place_at) {
  const auto from = reinterpret_cast<std::uintptr_t>(in);
  const auto to = reinterpret_cast<std::uintptr_t>(out);
  if (in == in_place_at || in_bytes == 0 || out_bytes == 0) return;
  if (from < to + out_bytes && to < from + in_bytes)
    refuse_argument(call,
                    "input and output overlap without being the same; use one buffer for both, or two apart");
}

}  // namespace verbena::collectives
