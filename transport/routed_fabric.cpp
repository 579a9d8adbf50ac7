#include "transport/routed_fabric.hpp"

#include <fmt/format.h>

namespace verbena::transport {

routed_fabric::routed_fabric(peer self, std::uint32_t job_size, std::string_view allowed)
    : me_(self), allowed_(allowed), routes_(job_size, route::none), self_(self) {}

bool routed_fabric::allows(std::string_view name) const {
  if (allowed_.empty()) return true;
  for (std::string_view rest = allowed_; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    if (rest.substr(0, comma) == name) return true;
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return false;
}

bool routed_fabric::attach(peer to, const contacts& published) {
  route& way = routes_[to.index];
  if (to == me_) {
    way = route::self;
  } else if (shm_ && allows("shm") && shm_->attach(to, {})) {
    way = route::shm;
    shm_used_ = true;
  } else if (verbs_ && verbs_->attach(to, published.verbs)) {
    way = route::verbs;
  } else if (tcp_ && tcp_->attach(to, published.tcp)) {
    way = route::tcp;
  } else if (sim_ && sim_->attach(to, {})) {
    way = route::sim;
  }
  return way != route::none;
}

std::string routed_fabric::explain(peer to) const {
  std::string text;
  auto line = [&](route way, std::string_view name, auto&& reason) {
    const bool may = way == route::self || way == route::sim || allows(name);
    text += fmt::format("  {} {}\n", routes_[to.index] == way ? "->" : "  ",
                        may ? reason() : fmt::format("{}: not allowed by VERBENA_FABRIC={}", name, allowed_));
  };
  line(route::self, "self", [&] { return self_.explain(to); });
  line(route::shm, "shm", [&] { return shm_ ? shm_->explain(to) : std::string("shm: not in this job"); });
  line(route::verbs, "verbs", [&] {
    return verbs_ ? verbs_->explain(to) : std::string("verbs: not looked for: all ranks are on this node");
  });
  line(route::tcp, "tcp", [&] {
    return tcp_ ? tcp_->explain(to) : std::string("tcp: not looked for: all ranks are on this node");
  });
  if (sim_) line(route::sim, "sim", [&] { return sim_->explain(to); });
  return text;
}

}  // namespace verbena::transport
