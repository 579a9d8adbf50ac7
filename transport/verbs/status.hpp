// Every way a work request can fail, as a sentence: what it means between two ranks, and what to look at.
#pragma once

#include <verbena/error.hpp>

#include <infiniband/verbs.h>

#include <string_view>

namespace verbena::transport::verbs {

struct status_row {
  ibv_wc_status status;
  std::string_view name;
  std::string_view meaning;
  std::string_view look_at;
  errc code;
};

/// The row of a status; an unknown one gets a row that says so.
const status_row& row_of(ibv_wc_status status) noexcept;

}  // namespace verbena::transport::verbs
