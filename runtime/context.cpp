#include "runtime/bootstrap/pmix.hpp"
#include "runtime/context_state.hpp"

#include <verbena/context.hpp>

namespace verbena {

context::context(thread_level threads) {
  const base::settings settings = base::read_settings();
  state_ = runtime::context_state::join(runtime::make_pmix_bootstrap(settings), settings);
  if (threads == thread_level::multiple) state_->doors().keep_apart();
}

context::context(std::unique_ptr<runtime::context_state> state) noexcept : state_(std::move(state)) {}
context::context(context&&) noexcept = default;
context& context::operator=(context&&) noexcept = default;
context::~context() = default;

communicator context::world() const noexcept { return communicator{&state_->world()}; }

communicator context::self() const noexcept { return communicator{&state_->self()}; }

std::vector<rank> context::node_ranks() const {
  std::vector<verbena::rank> ranks;
  for (std::uint32_t r : state_->job().local_ranks) ranks.emplace_back(r);
  return ranks;
}

void context::progress() {
  const runtime::entrance inside(state_->doors());
  state_->look_once();
}

void context::abort(int status, std::string_view why) {
  state_->boot().abort(status, why);
  __builtin_unreachable();  // the compiler forgets [[noreturn]] behind a virtual call
}

std::vector<std::pair<std::string, std::uint64_t>> context::counters() const {
  const runtime::entrance inside(state_->doors());
  std::vector<std::pair<std::string, std::uint64_t>> result;
  const runtime::counters all = state_->counted();
  for (const runtime::counter_row& row : runtime::counter_rows()) result.emplace_back(row.name, all.*row.value);
  return result;
}

}  // namespace verbena
