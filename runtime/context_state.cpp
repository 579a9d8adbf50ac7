#include "runtime/context_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>

namespace verbena::runtime {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Under a launcher that offers no segment the lowest rank of the node makes one; the others open it through /proc,
/// and know it by its inode. No name is left that a crash could leave behind. A rank that is alone on its node makes one for
/// itself: it sleeps on a bell, and all ranks of the job meet equally often.
base::unique_fd share_segment(bootstrap& boot, base::nanoseconds timeout) {
  constexpr std::string_view key = "verbena.segment";
  const job_info& job = boot.job();
  base::unique_fd fd;
  if (job.self == job.local_ranks.front()) {
    fd = base::create_segment({.job_size = job.size, .local_ranks = job.local_ranks});
    struct stat info {};
    ::fstat(fd.get(), &info);
    boot.publish(key, bytes_of(fmt::format("/proc/{}/fd/{} {}", ::getpid(), fd.get(), info.st_ino)));
  }
  boot.fence(timeout);
  if (!fd) {
    const auto value = boot.lookup(job.local_ranks.front(), key, timeout);
    if (!value) throw error(errc::timed_out, "the lowest rank of this node published no segment");
    const std::string text(reinterpret_cast<const char*>(value->data()), value->size());
    const std::size_t space = std::min(text.find(' '), text.size());
    fd = base::unique_fd{::open(text.substr(0, space).c_str(), O_RDWR | O_CLOEXEC)};
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0)
      throw error(errc::system, fmt::format("cannot open the node's shared segment at {}: {}", text.substr(0, space),
                                            std::strerror(errno)));
    if (fmt::format(" {}", info.st_ino) != text.substr(space))
      throw error(errc::system, fmt::format("{} is not the node's shared segment: the ranks of this node see different "
                                            "processes (containers with process numbers of their own)",
                                            text.substr(0, space)));
  }
  boot.fence(timeout);  // the maker may go from here on
  return fd;
}

}  // namespace

context_state::context_state(std::unique_ptr<bootstrap> boot, const base::settings& settings)
    : settings_(settings), boot_(std::move(boot)) {}

void context_state::open_segment() {
  const job_info& job = boot_->job();
  base::unique_fd fd = boot_->segment();
  made_by_ranks_ = !fd;
  if (!fd && job.size > 1)
    fd = share_segment(*boot_, static_cast<base::nanoseconds>(settings_.join_timeout_s) * base::second);
  if (!fd) return;
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw error(errc::system, "cannot look at the node's shared segment");
  segment_ = base::mapping::shared(fd.get(), static_cast<std::size_t>(info.st_size));
  if (!segment_)
    throw error(errc::out_of_memory, fmt::format("cannot map the node's shared segment ({} MiB of address space): {}",
                                                 info.st_size >> 20, std::strerror(errno)));
  std::string why;
  page_ = base::job_page::open(segment_, why);
  if (!page_) throw error(errc::malformed, why);
  const auto locals = page_->local_ranks();
  const auto self = std::find(locals.begin(), locals.end(), job.self);
  if (self == locals.end() || page_->header().job_size != job.size)
    throw error(errc::malformed, fmt::format("the node's segment was made for another job: it has {} ranks and no rank {}",
                                             page_->header().job_size, job.self));
  local_index_ = static_cast<std::uint32_t>(self - locals.begin());
}

std::unique_ptr<context_state> context_state::join(std::unique_ptr<bootstrap> boot, const base::settings& settings,
                                                   std::unique_ptr<transport::sim::sim_fabric> simulated) {
  std::unique_ptr<context_state> made{new context_state(std::move(boot), settings)};
  context_state& c = *made;
  const job_info& job = c.boot_->job();
  c.simulated_ = simulated != nullptr;
  if (!simulated) c.open_segment();

  c.fabric_ = std::make_unique<transport::routed_fabric>(peer{job.self}, job.size, c.settings_.fabric);
  if (c.page_)
    c.fabric_->add(std::make_unique<transport::shm::shm_fabric>(
        *c.page_, std::span(c.segment_.data(), c.segment_.size()), c.local_index_,
        transport::shm::options{.single_copy = c.settings_.single_copy != "off"}));
  if (simulated) c.fabric_->add(std::move(simulated));
  c.connect();

  c.engine_ = std::make_unique<runtime::engine>(*c.fabric_, c.settings_, job.self, job.size);
  c.engine_->ask_membership(
      [](const void* of, std::uint32_t context, peer who) noexcept {
        const auto& all = static_cast<const context_state*>(of)->communicators_;
        const std::uint32_t slot = context_table::slot_of(context);
        return slot < all.size() && all[slot] != nullptr && all[slot]->contains(who);
      },
      &c);
  c.waiter_ = std::make_unique<waiter>(c.page_ ? &*c.page_ : nullptr, c.local_index_, c.settings_.spin_us, c.doors_);
  c.memory_ = std::make_unique<node_memory>(*c.fabric_, c.doors_);
  c.blocks_ = std::make_unique<shared_blocks>(*c.fabric_);
  c.make_first_communicators();
  if (c.settings_.explain) c.print_ways();
  return made;
}

/// Finds a way to every rank. Where ranks are reached by verbs or TCP all publish how, even if not at all; with verbs nobody sends
/// before everybody listens. The secret that proves TCP connections is the lowest rank's.
void context_state::connect() {
  const job_info& job = boot_->job();
  const bool all_local = job.local_ranks.size() == job.size, others = !simulated_ && job.size > 1;
  const bool verbs = others && fabric_->wants_verbs(all_local), tcp = others && fabric_->wants_tcp(all_local);
  const base::nanoseconds timeout = static_cast<base::nanoseconds>(settings_.join_timeout_s) * base::second;
  const base::job_page* const page = page_ ? &*page_ : nullptr;
  std::function<void()> wake;
  if (page_) wake = [at = *page_, bell = local_index_] { base::ring(at.bell(bell)); };
  constexpr std::string_view verbs_key = "verbena.verbs", tcp_key = "verbena.tcp", secret_key = "verbena.secret";
  constexpr std::uint32_t keeper_of_secret = 0;
  if (verbs) {
    transport::verbs::options how;
    how.device = settings_.device;
    how.kept_bytes = settings_.keep_registered;
    how.link_timeout = static_cast<base::nanoseconds>(settings_.link_timeout_s) * base::second;
    how.wake = wake;
    fabric_->add(std::make_unique<transport::verbs::verbs_fabric>(peer{job.self}, job.size, page, std::move(how)));
    boot_->publish(verbs_key, fabric_->verbs_address());
  }
  if (tcp) {
    transport::tcp::options how;
    how.only_this_host = all_local;
    base::interface_list::parse(settings_.interface, how.interfaces);
    base::port_range::parse(settings_.port_range, how.ports);
    how.link_timeout = static_cast<base::nanoseconds>(settings_.link_timeout_s) * base::second;
    how.wake = wake;
    fabric_->add(std::make_unique<transport::tcp::tcp_fabric>(peer{job.self}, job.size, page, std::move(how)));
    boot_->publish(tcp_key, fabric_->tcp_address());
    if (job.self == keeper_of_secret) boot_->publish(secret_key, transport::tcp::make_secret());
  }
  if (verbs || tcp) boot_->fence(timeout);
  if (tcp) {
    transport::tcp::secret key;
    const auto published = boot_->lookup(keeper_of_secret, secret_key, timeout);
    if (!published || published->size() != key.size())
      throw error(errc::timed_out, fmt::format("rank {}: rank {} published no secret to prove TCP connections with",
                                               job.self, keeper_of_secret));
    std::copy(published->begin(), published->end(), key.begin());
    fabric_->trust(key, job.name);
  }
  for (std::uint32_t i = 0; i < job.size; ++i) {
    const auto look_up = [&](bool wanted, std::string_view key) {
      auto value = wanted && i != job.self ? boot_->lookup(i, key, timeout) : std::nullopt;
      return value ? std::move(*value) : std::vector<std::byte>{};
    };
    const std::vector<std::byte> by_verbs = look_up(verbs, verbs_key), by_tcp = look_up(tcp, tcp_key);
    if (!fabric_->attach(peer{i}, {by_verbs, by_tcp}))
      throw error(errc::link_down,
                  fmt::format("rank {} has no way to rank {}:\n{}", job.self, i, fabric_->explain(peer{i})));
  }
  if (verbs) boot_->fence(timeout);
}

/// Those that every rank has without asking, in the first generation of their slots.
void context_state::make_first_communicators() {
  const job_info& job = boot_->job();
  const auto make = [&](std::uint32_t slot, member_list members, std::uint32_t size, rank self) -> auto& {
    engine_->contexts().hold(slot);
    const std::uint32_t context = engine_->install_context(slot, 0);
    return adopt(std::make_unique<communicator_state>(*this, context, std::move(members), size, self));
  };
  communicator_state& all = make(world_slot, nullptr, job.size, rank{job.self});
  if (page_ && job.local_ranks.size() == job.size) {
    const std::span<std::byte> block = fabric_->world_block();
    all.set_block({block.data(), block.size()});
  }
  make(self_slot, std::make_shared<const std::vector<std::uint32_t>>(1, job.self), 1, rank{0});
}

communicator_state& context_state::adopt(std::unique_ptr<communicator_state> made) {
  const std::uint32_t slot = context_table::slot_of(made->context());
  if (slot >= communicators_.size()) communicators_.resize(std::max<std::size_t>(slot + 1, communicators_.size() * 2));
  retired_.reserve(communicators_.size());  // so that retire allocates nothing
  communicators_[slot] = std::move(made);
  return *communicators_[slot];
}

void context_state::retire(communicator_state& of) noexcept {
  if (::getpid() != process_) return;  // a forked child's copy of a handle
  of.free_attributes();
  if (of.busy()) {
    retired_.push_back(&of);
    of.close();
  } else
    communicators_[context_table::slot_of(of.context())].reset();
}

void context_state::reap() noexcept {
  std::erase_if(retired_, [&](communicator_state* of) {
    if (of->busy()) {
      of->close();
      return false;
    }
    communicators_[context_table::slot_of(of->context())].reset();
    return true;
  });
}

bool context_state::has_requests_of(const communicator_state& of) const noexcept {
  if (accesses_.any_of(of)) return true;
  return requests_ != 0 && std::any_of(operations_.begin(), operations_.end(),
                                       [&](const pooled_operation& p) { return p.taken && p.on == &of; });
}

context_state::~context_state() {
  if (::getpid() != process_) {
    forget_all();
    return;
  }
  const entrance inside(doors_);  // the last thread is alone, but a wait is made from inside
  const bool joined = communicators_.size() > self_slot;
  if (joined) {  // MPI 4.0, section 11.2.4: those of the process alone go first
    self().free_attributes();
    world().free_attributes();
  }
  // What was detached goes on until here. Not while an error unwinds the stack: then nobody may be left to receive it.
  if (joined && !simulated_ && std::uncaught_exceptions() == unwinding_at_join_) {
    engine_->begin_leaving();
    wait_for([&] { return engine_->nothing_pending(); });
  }
  if (engine_ && settings_.stats) print_counters();
  if (engine_) engine_->close();
  communicators_.clear();  // cached schedules first: they may hold operations
  blocks_.reset();
  waiter_.reset();
  engine_.reset();
  fabric_.reset();
  // Where no launcher of ours looks after the page, those who wait learn it from here.
  if (page_ && made_by_ranks_) page_->announce(boot_->job().self, base::rank_state::left, 0);
  if (boot_) boot_->leave();
}

/// In a child process, which has a copy of everything and owns none of it: not the place in the job, nor what lies in
/// the segment.
void context_state::forget_all() noexcept {
  struct left_alone {
    std::vector<std::unique_ptr<communicator_state>> communicators;
    std::unique_ptr<shared_blocks> blocks;
    std::unique_ptr<waiter> waiting;
    std::unique_ptr<runtime::engine> engine;
    std::unique_ptr<transport::routed_fabric> fabric;
    std::unique_ptr<bootstrap> boot;
    left_alone* before;
  };
  static left_alone* kept = nullptr;  // never destroyed: that would be seen by the parent
  kept = new left_alone{std::move(communicators_), std::move(blocks_), std::move(waiter_),
                        std::move(engine_),        std::move(fabric_), std::move(boot_),
                        kept};
}

void context_state::send_kept() {
  const entrance inside(doors_);
  if (engine_->keeps_messages()) wait_for([&] { return !engine_->keeps_messages(); });
}

void context_state::wake(peer member) noexcept {
  if (!page_) return;
  const auto locals = page_->local_ranks();
  const auto at = std::lower_bound(locals.begin(), locals.end(), member.index);
  if (at == locals.end() || *at != member.index) return;
  base::doorbell& bell = page_->bell(static_cast<std::uint32_t>(at - locals.begin()));
  // Relaxed and without a fence: the argument stands in waiter.hpp.
  if (bell.sleeping.load(std::memory_order_relaxed) != 0) base::ring(bell);
}

pooled_operation& context_state::take_operation() {
  if (free_operations_ == nullptr) {
    pooled_operation& fresh = operations_.emplace_back();
    fresh.host = this;
    fresh.taken = true;
    ++requests_;
    return fresh;
  }
  pooled_operation& p = *std::exchange(free_operations_, free_operations_->next_free);
  p.taken = true;
  ++requests_;
  return p;
}

void context_state::release(pooled_operation& p) noexcept {
  p.taken = false;
  --requests_;
  p.op.on_done = nullptr;
  if (p.form != nullptr) [[unlikely]]
    p.form.reset();
  p.next_free = std::exchange(free_operations_, &p);
}

std::string context_state::obituary(peer who) const {
  const std::string words = fabric_->last_words(who);
  return words.empty() ? fate(who) : fmt::format("{} ({})", fate(who), words);
}

std::string context_state::reason(errc why, peer who) const {
  if (why == errc::peer_failed || why == errc::peer_left) return obituary(who);
  const std::string words = why == errc::link_down ? fabric_->last_words(who) : std::string{};
  const std::string name = make_error_code(why).message();
  return words.empty() ? name : fmt::format("{} ({})", name, words);
}

std::string context_state::fate(peer who) const {
  if (!page_) return fmt::format("rank {} is gone", who.index);
  const base::rank_record& record = page_->record(who.index);
  base::rank_state state = record.state.load(std::memory_order_acquire);
  // A copy from a dead process fails at once; how it ended follows from the launcher within milliseconds.
  const auto known = [&] { return state == base::rank_state::left || state == base::rank_state::failed; };
  for (int i = 0; i < 200 && !known() && !made_by_ranks_ && !simulated_; ++i) {
    ::usleep(1000);
    state = record.state.load(std::memory_order_acquire);
  }
  if (state == base::rank_state::left) return fmt::format("rank {} has left the job", who.index);
  if (state != base::rank_state::failed) return fmt::format("rank {} is gone", who.index);
  const int how = static_cast<int>(record.outcome);
  if (WIFSIGNALED(how)) return fmt::format("rank {} was killed by signal {}", who.index, WTERMSIG(how));
  return fmt::format("rank {} exited with status {}", who.index, WEXITSTATUS(how));
}

/// What a way can do is known when the peer has joined, or is connected, which nothing else here waits for.
void context_state::await_peers(base::nanoseconds at_most) {
  const base::nanoseconds deadline = base::steady_now() + at_most;
  for (std::uint32_t i = 0; i < boot_->job().size; ++i) fabric_->connect(peer{i});
  for (std::uint32_t i = 0; i < boot_->job().size; ++i)
    while (!fabric_->settled(peer{i}) && base::steady_now() < deadline)
      if (!engine_->progress(base::steady_now())) ::usleep(500);
}

void context_state::print_ways() {
  await_peers(5 * base::second);
  const job_info& job = boot_->job();
  std::string text;
  for (std::uint32_t i = 0; i < job.size; ++i) {
    const transport::peer_limits limits = fabric_->limits(peer{i});
    const char* bulk = limits.bulk == transport::bulk_method::put        ? "put by the sender"
                       : limits.bulk == transport::bulk_method::together ? "copied by both ends"
                                                                         : "streamed in packets";
    text += fmt::format("rank {} -> rank {}: eager to {} B (packets of {} B), above: {}\n{}", job.self, i,
                        limits_in_force(limits, settings_.eager_limit).eager_limit, limits.packet_bytes, bulk,
                        fabric_->explain(peer{i}));
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

counters context_state::counted() const {
  counters all = engine_->counts();
  const transport::region_counts registered = fabric_->registration_counts();
  all.registrations_found = registered.hits;
  all.registrations_made = registered.misses;
  all.registrations_evicted = registered.evictions;
  return all;
}

void context_state::print_counters() const {
  const counters all = counted();
  std::string text = fmt::format("rank {} counters:", boot_->job().self);
  for (const counter_row& row : counter_rows()) text += fmt::format(" {}={}", row.name, all.*row.value);
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace verbena::runtime
