// The one-sided calls: argument checks, keys, requests, and the words of their errors.
#include "runtime/one_sided.hpp"

#include "runtime/context_state.hpp"
#include "runtime/request_access.hpp"

#include <fmt/format.h>

#include <utility>

namespace verbena {
namespace runtime {
namespace {

using wire::one_sided_kind;

const char* name_of(one_sided_kind what) noexcept {
  switch (what) {
    case one_sided_kind::put:
      return "put";
    case one_sided_kind::get:
      return "get";
    case one_sided_kind::fetch_add:
      return "fetch_add";
    case one_sided_kind::compare_swap:
      return "compare_swap";
    case one_sided_kind::put_with_flag:
      return "put_with_flag";
    case one_sided_kind::confirm:
      break;
  }
  return "flush";
}

[[noreturn]] void throw_access_error(const communicator_state& on, const one_sided_call& call, errc why,
                                     rank with) {
  const wire::one_sided_body& c = call.body;
  std::string reason = on.host().reason(why, on.peer_of(with));
  if (why == errc::access_denied)
    reason = c.offset > c.key.size || c.bytes > c.key.size - c.offset
                 ? fmt::format("the region has {} B", c.key.size)
                 : "the key is not, or no longer, that of a region there";
  if (why == errc::invalid_argument) reason = "the address there is not a multiple of 8";
  if (why == errc::outcome_unknown)
    reason = fmt::format("the link to rank {} broke while it was under way: it was carried out once or not at all",
                         with.value);
  throw error(why, fmt::format("rank {}{}: {} of {} B at offset {} of rank {}: {}", on.self().value,
                               on.of_name(), name_of(c.what), c.bytes, c.offset, with.value, reason));
}

one_sided_call make_call(const communicator_state& on, one_sided_kind what, const void* data,
                         std::size_t bytes, rank with, const remote_key& key, std::uint64_t offset,
                         std::uint64_t first = 0, std::uint64_t second = 0) {
  if (!on.holds(with))
    throw error(errc::invalid_argument, fmt::format("{}: rank {} is not in this communicator (0..{})",
                                                    name_of(what), with.value, on.size() - 1));
  if (data == nullptr && bytes != 0)
    throw error(errc::invalid_argument,
                fmt::format("{}: the buffer is a null pointer, the size {} B", name_of(what), bytes));
  one_sided_call call;
  call.local = const_cast<void*>(data);  // a put only reads it
  call.native = key_codec::native(key);
  call.body.what = what;
  call.body.key = key_codec::own(key);
  call.body.offset = offset;
  call.body.bytes = bytes;
  call.body.operands[0] = first;
  call.body.operands[1] = second;
  return call;
}

/// What can be seen without asking: then nothing goes out.
bool outside(const one_sided_call& call) noexcept {
  const std::uint64_t size = call.body.key.size;
  return call.body.key.handle == 0 || call.body.offset > size || call.body.bytes > size - call.body.offset;
}

void run(communicator_state& on, const one_sided_call& call, rank with) {
  if (outside(call)) throw_access_error(on, call, errc::access_denied, with);
  operation op;
  on.host().engine().one_sided(op, on.record_of(with), call);
  on.host().wait(op);
  if (op.result.error != errc::success) throw_access_error(on, call, op.result.error, with);
}

request start(communicator_state& on, const one_sided_call& call, rank with) {
  one_sided_work& work = on.host().accesses().take(on);
  work.host = &on.host();
  work.call = call;
  work.with = with;
  if (outside(call)) {
    work.op.start();
    work.op.complete(errc::access_denied);
  } else {
    on.host().engine().one_sided(work.op, on.record_of(with), call);
  }
  return request_access::pending(work);
}

}  // namespace

registration::registration(engine& of, transport::routed_fabric& fabric, gate& doors, transport::buffer memory)
    : owner(of), doors_of_owner(doors), own(of.exposed().add(memory)), native(fabric.register_memory(memory)) {}

registration::~registration() {
  const entrance inside(doors_of_owner);
  owner.exposed().remove(own);
  native = {};
}

remote_key key_codec::join(const transport::remote_key& own, const transport::remote_key& native) noexcept {
  remote_key key;
  key.address_ = own.address;
  key.size_ = own.size;
  key.native_[0] = native.keys[0];
  key.native_[1] = native.keys[1];
  key.native_[2] = native.handle;
  key.route_ = native.handle == 0 ? std::uint8_t{0} : native.fabric;
  key.kind_ = own.kind;
  key.handle_ = own.handle;
  key.generation_ = own.keys[1];
  return key;
}

transport::remote_key key_codec::own(const remote_key& key) noexcept {
  transport::remote_key own;
  own.address = key.address_;
  own.size = key.size_;
  own.keys[0] = transport::key_table::mark;
  own.keys[1] = key.generation_;
  own.handle = key.handle_;
  own.kind = key.kind_;
  return own;
}

transport::remote_key key_codec::native(const remote_key& key) noexcept {
  transport::remote_key native;
  native.address = key.address_;
  native.size = key.size_;
  native.keys[0] = key.native_[0];
  native.keys[1] = key.native_[1];
  native.handle = key.native_[2];
  native.fabric = key.route_;
  native.kind = key.kind_;
  return native;
}

region key_codec::hold(std::unique_ptr<registration> made) noexcept {
  region r;
  r.held_ = std::move(made);
  return r;
}

void one_sided_work::raise() const {
  throw_access_error(*on, call, op.result.error, with);
}
void one_sided_work::release() noexcept {
  host->accesses().release(*this);
}

one_sided_work& one_sided_works::take(communicator_state& on) {
  one_sided_work& work = free_ == nullptr ? all_.emplace_back() : *std::exchange(free_, free_->next_free);
  work.on = &on;
  work.taken = true;
  ++taken_;
  return work;
}

void one_sided_works::release(one_sided_work& work) noexcept {
  work.taken = false;
  --taken_;
  work.op.on_done = nullptr;
  work.next_free = std::exchange(free_, &work);
}

bool one_sided_works::any_of(const communicator_state& on) const noexcept {
  if (taken_ == 0) return false;
  for (const one_sided_work& work : all_)
    if (work.taken && work.on == &on) return true;
  return false;
}

}  // namespace runtime

using runtime::communicator_access;
using runtime::communicator_state;
using runtime::make_call;
using runtime::wire::one_sided_kind;

region::region() noexcept = default;
region::region(region&&) noexcept = default;
region& region::operator=(region&&) noexcept = default;
region::~region() = default;

remote_key region::key() const noexcept {
  return held_ == nullptr ? remote_key{} : runtime::key_codec::join(held_->own, held_->native.key());
}

region register_memory(communicator on, void* data, std::size_t bytes) {
  if (data == nullptr && bytes != 0)
    throw error(errc::invalid_argument,
                fmt::format("register_memory: the memory is a null pointer, the size {} B", bytes));
  runtime::context_state& host = communicator_access::state(on).host();
  const runtime::entrance inside(host.doors());
  auto made = std::make_unique<runtime::registration>(
      host.engine(), host.fabric(), host.doors(), transport::buffer{static_cast<std::byte*>(data), bytes});
  if (made->own.handle == 0)
    throw error(errc::out_of_memory, "register_memory: this rank has a million regions; let some go");
  return runtime::key_codec::hold(std::move(made));
}

void put(communicator on, const void* data, std::size_t bytes, rank to, const remote_key& key,
         std::uint64_t offset) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  runtime::run(state, make_call(state, one_sided_kind::put, data, bytes, to, key, offset), to);
}

void get(communicator on, void* data, std::size_t bytes, rank from, const remote_key& key,
         std::uint64_t offset) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  runtime::run(state, make_call(state, one_sided_kind::get, data, bytes, from, key, offset), from);
}

void put_with_flag(communicator on, const void* data, std::size_t bytes, rank to, const remote_key& key,
                   std::uint64_t offset, std::uint64_t word) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  runtime::run(state, make_call(state, one_sided_kind::put_with_flag, data, bytes, to, key, offset, word),
               to);
}

std::uint64_t fetch_add(communicator on, std::uint64_t value, rank to, const remote_key& key,
                        std::uint64_t offset) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  std::uint64_t old = 0;
  runtime::run(state, make_call(state, one_sided_kind::fetch_add, &old, sizeof old, to, key, offset, value),
               to);
  return old;
}

std::uint64_t compare_swap(communicator on, std::uint64_t expected, std::uint64_t desired, rank to,
                           const remote_key& key, std::uint64_t offset) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  std::uint64_t old = 0;
  runtime::run(
      state,
      make_call(state, one_sided_kind::compare_swap, &old, sizeof old, to, key, offset, expected, desired),
      to);
  return old;
}

request iput(communicator on, const void* data, std::size_t bytes, rank to, const remote_key& key,
             std::uint64_t offset) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  return runtime::start(state, make_call(state, one_sided_kind::put, data, bytes, to, key, offset), to);
}

request iget(communicator on, void* data, std::size_t bytes, rank from, const remote_key& key,
             std::uint64_t offset) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  return runtime::start(state, make_call(state, one_sided_kind::get, data, bytes, from, key, offset), from);
}

request iput_with_flag(communicator on, const void* data, std::size_t bytes, rank to, const remote_key& key,
                       std::uint64_t offset, std::uint64_t word) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  return runtime::start(
      state, make_call(state, one_sided_kind::put_with_flag, data, bytes, to, key, offset, word), to);
}

request ifetch_add(communicator on, std::uint64_t value, rank to, const remote_key& key, std::uint64_t offset,
                   std::uint64_t& old) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  return runtime::start(
      state, make_call(state, one_sided_kind::fetch_add, &old, sizeof old, to, key, offset, value), to);
}

request icompare_swap(communicator on, std::uint64_t expected, std::uint64_t desired, rank to,
                      const remote_key& key, std::uint64_t offset, std::uint64_t& old) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  return runtime::start(
      state,
      make_call(state, one_sided_kind::compare_swap, &old, sizeof old, to, key, offset, expected, desired),
      to);
}

namespace runtime {
namespace {

void flush_peer(communicator_state& on, peer at) {
  context_state& host = on.host();
  engine& engine = host.engine();
  engine_peer& to = engine.meet(at);
  using confirmation = runtime::engine::confirmation;
  host.wait_for([&] { return to.down != errc::success || engine.confirmed(at) != confirmation::under_way; });
  errc why = to.down;
  if (why == errc::success && engine.confirmed(at) == confirmation::unknown) {
    operation op;
    engine.confirm(op, to);
    host.wait(op);
    why = op.result.error;
  }
  // What had ended well before may have been carried out or not; what had not has said so itself.
  if (why != errc::success)
    throw error(why, fmt::format("rank {}{}: flush: {}", on.self().value, on.of_name(), host.reason(why, at)));
}

}  // namespace
}  // namespace runtime

void flush(communicator on, rank at) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  if (!state.holds(at))
    throw error(errc::invalid_argument, fmt::format("flush: rank {} is not in this communicator (0..{})",
                                                    at.value, state.size() - 1));
  runtime::flush_peer(state, state.peer_of(at));
}

void flush_all(communicator on) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  for (const runtime::peer at : state.host().engine().accessed()) runtime::flush_peer(state, at);
}

std::uint64_t wait_flag(communicator on, rank from) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  if (!state.holds(from))
    throw error(errc::invalid_argument, fmt::format("wait_flag: rank {} is not in this communicator (0..{})",
                                                    from.value, state.size() - 1));
  runtime::context_state& host = state.host();
  const runtime::peer source = state.peer_of(from);
  const runtime::engine_peer& record = state.record_of(from);
  std::optional<std::uint64_t> word = host.engine().take_flag(source);
  if (!word)
    host.wait_for([&] {
      word = host.engine().take_flag(source);
      return word.has_value() || record.down != errc::success;
    });
  if (!word)
    throw error(record.down, fmt::format("rank {}{}: wait_flag from rank {}: {}", state.self().value,
                                         state.of_name(), from.value, host.obituary(source)));
  return *word;
}

std::optional<std::uint64_t> test_flag(communicator on, rank from) {
  communicator_state& state = communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  if (!state.holds(from))
    throw error(errc::invalid_argument, fmt::format("test_flag: rank {} is not in this communicator (0..{})",
                                                    from.value, state.size() - 1));
  state.host().look_once();
  return state.host().engine().take_flag(state.peer_of(from));
}

}  // namespace verbena
