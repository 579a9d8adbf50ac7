// A wait that lasts too long says so, once: for what, with whom, how far it got, and what the other one waits
// for.
#include "runtime/context_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace verbena::runtime {

wait_report engine::report(const operation* op) noexcept {
  wait_report r;
  const auto fill = [&](const message& m) {
    const bool posted = m.at == step::posted;
    r.call = posted || m.at == step::receiving || m.at == step::starting || m.at == step::cts ||
                     m.at == step::refuse
                 ? base::waiting_in::receive
                 : base::waiting_in::send;
    const std::uint32_t context = posted ? m.posted.want.context : m.head.context.value;
    r.collective = (context & collective_bit) != 0;
    r.with = m.with == nullptr ? ~std::uint32_t{0} : m.with->index;
    r.label = posted ? m.posted.want.label : tag{m.head.label};
    r.bytes = m.size;
    r.at = m.at;
  };
  if (op != nullptr && op->pending() && op->runner != nullptr) {
    const auto& m = *static_cast<const message*>(op->runner);
    if (m.live && m.op == op) {
      fill(m);
      r.own = true;
      return r;
    }
  }
  messages_.for_each_live([&](const message& m) {
    if (r.at == step::idle && m.op != nullptr && m.op != &m.moving) fill(m);
  });
  return r;
}

namespace {

bool is_access(const wait_report& r) {
  return r.at == step::one_sided || r.at == step::native || r.at == step::asking || r.at == step::asked;
}

const char* progress_of(const wait_report& r) {
  switch (r.at) {
    case step::posted:
      return "no such message has come";
    case step::starting:
    case step::cts:
      return "it has come, its sender is being told to go on";
    case step::receiving:
      return "it has come, its data is under way";
    case step::eager:
    case step::packed:
    case step::rts:
    case step::envelope:
      return "the receiver has no room, or does not look";
    case step::awaiting:
      return "announced; not received, or its data is under way";
    case step::unacknowledged:
      return "sent, and not received";
    case step::one_sided:
    case step::asking:
      return "there is no room on the way to it";
    case step::asked:
      return "asked, and not answered: that rank makes no progress";
    default:
      return "its data is under way";
  }
}

std::string label_text(tag label) {
  return label == any_tag ? "any tag" : fmt::format("tag {}", label.value);
}

std::string rank_text(std::uint32_t job_rank) {
  return job_rank == ~std::uint32_t{0} ? "any rank" : fmt::format("rank {}", job_rank);
}

}  // namespace

/// It is on another host, where no page of ours tells of it.
bool context_state::must_be_asked(std::uint32_t job_rank) const {
  if (!page_ || simulated_ || job_rank >= boot_->job().size) return false;
  const auto locals = page_->local_ranks();
  return !std::binary_search(locals.begin(), locals.end(), job_rank);
}

/// What another rank says of itself: on the page if it is of this host, else in the answer to our question.
std::string context_state::wait_of(std::uint32_t job_rank) const {
  if (!page_) return {};
  wire::wait_body its;
  if (must_be_asked(job_rank)) {
    const auto told = engine_->told_wait(peer{job_rank});
    if (!told)
      return fmt::format(
          "; rank {}, on another host, does not answer: it is outside of the library, or stopped", job_rank);
    its = *told;
  } else {
    const auto locals = page_->local_ranks();
    const auto at = std::lower_bound(locals.begin(), locals.end(), job_rank);
    if (at == locals.end() || *at != job_rank) return {};
    const base::doorbell& bell = page_->bell(static_cast<std::uint32_t>(at - locals.begin()));
    its = {bell.waits_in.load(std::memory_order_relaxed), bell.waits_for.load(std::memory_order_relaxed),
           bell.waits_label.load(std::memory_order_relaxed)};
  }
  const std::string label = label_text(tag{its.label});
  switch (static_cast<base::waiting_in>(its.in)) {
    case base::waiting_in::nothing:
      return fmt::format("; rank {} does not wait now", job_rank);
    case base::waiting_in::receive:
      return fmt::format("; rank {} waits for a message from {}, {}", job_rank, rank_text(its.with), label);
    case base::waiting_in::send:
      return fmt::format("; rank {} waits in a send to {}, {}", job_rank, rank_text(its.with), label);
    default:
      return fmt::format("; rank {} waits, too", job_rank);
  }
}

std::string context_state::words_of(const wait_report& r, base::nanoseconds lasted) const {
  std::string text =
      fmt::format("verbena: rank {} has waited for {} s", boot_->job().self, lasted / base::second);
  if (r.at == step::idle) return text + "; no message of its own is under way\n";
  const bool receive = r.call == base::waiting_in::receive;
  text += fmt::format("{}: {}{} of {} B {} {}, {}: {}", r.own ? "" : ", among other things for this",
                      r.collective ? "a collective's " : "",
                      receive        ? "receive"
                      : is_access(r) ? "one-sided access"
                                     : "send",
                      r.bytes, receive ? "from" : "to", rank_text(r.with),
                      r.collective ? "step " + std::to_string(r.label.value) : label_text(r.label),
                      progress_of(r));
  if (r.with != ~std::uint32_t{0} && r.with != boot_->job().self) text += wait_of(r.with);
  return text + "\n";
}

void context_state::publish_wait(const wait_report& r) noexcept {
  const auto in = static_cast<std::uint32_t>(r.call);
  engine_->waits_for({in, r.with, r.label.value});
  if (!page_) return;
  base::doorbell& bell = page_->bell(local_index_);
  bell.waits_for.store(r.with, std::memory_order_relaxed);
  bell.waits_label.store(r.label.value, std::memory_order_relaxed);
  bell.waits_in.store(in, std::memory_order_relaxed);
}

void context_state::notice(slow_wait& w) noexcept {
  constexpr base::nanoseconds time_to_answer = base::second;
  const base::nanoseconds now = base::steady_now();
  if (w.since == 0) {
    w.since = now;
    publish_wait(engine_->report(w.what));
    return;
  }
  const auto limit = static_cast<base::nanoseconds>(settings_.slow_wait_s) * base::second;
  if (w.told || limit == 0 || now - w.since < limit) return;
  const wait_report report = engine_->report(w.what);
  if (report.at != step::idle && must_be_asked(report.with)) {
    if (w.asked == 0 || w.whom != report.with) {
      if (w.asked != 0) engine_->forget_ask(peer{w.whom});
      w.asked = now;
      w.whom = report.with;
      return engine_->ask_wait(peer{w.whom});
    }
    if (!engine_->told_wait(peer{report.with}) && now - w.asked < time_to_answer) return;
  }
  w.told = true;
  if (w.asked != 0) engine_->forget_ask(peer{w.whom});
  const std::string line = words_of(report, (w.asked != 0 ? w.asked : now) - w.since);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void context_state::end_notice(const slow_wait& w) noexcept {
  if (w.since == 0) return;
  if (w.asked != 0) engine_->forget_ask(peer{w.whom});
  engine_->waits_for({});
  if (page_) page_->bell(local_index_).waits_in.store(0, std::memory_order_relaxed);
}

}  // namespace verbena::runtime
