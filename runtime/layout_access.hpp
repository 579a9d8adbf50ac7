// What stands behind a layout value. Internal.
#pragma once

#include "runtime/calls.hpp"
#include "runtime/engine/cursor.hpp"

#include <fmt/format.h>
#include <verbena/layout.hpp>

#include <memory>

namespace verbena::runtime {

class layout_access {
 public:
  /// The memory it describes at `base`, to be sent or to be received into. Valid while the layout, or a copy of
  /// `shared`, is there. Throws error{invalid_argument}.
  static user_memory source(const char* call, const void* base, const layout& form) {
    if (base == nullptr && form.bytes_ != 0) refuse_buffer(call, form.bytes_);
    user_memory memory = in_a_row(base, form.bytes_);
    memory.form = form.shape_.get();
    if (memory.form == nullptr && form.bytes_ != 0) memory.data += form.first_;
    return memory;
  }
  static user_memory room(const char* call, void* base, const layout& form) {
    if (form.overlapping())
      throw error(errc::invalid_argument,
                  fmt::format("{}: blocks of the layout overlap; such a layout can only be sent from", call));
    return source(call, base, form);
  }
  static const std::shared_ptr<const shape>& shared(const layout& form) noexcept { return form.shape_; }
};

}  // namespace verbena::runtime
