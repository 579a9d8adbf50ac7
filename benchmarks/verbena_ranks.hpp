// Verbena under the measuring loops.
#pragma once

#include "one_sided.hpp"
#include "ranks.hpp"

#include <verbena/verbena.hpp>

#include <memory_resource>
#include <vector>

namespace bench {

class verbena_ranks {
 public:
  using request = verbena::request;

  /// Memory of the node's segment, as far as that goes, with the keys of all ranks.
  struct exposed {
    std::pmr::vector<std::byte> bytes;
    verbena::region region;
    std::vector<verbena::remote_key> keys;
    std::vector<verbena::request> under_way;
    std::byte* data() { return bytes.data(); }
  };

  int rank() const { return world_.rank().value; }
  int size() const { return world_.size(); }
  void send(const void* data, std::size_t bytes, int to, int label) {
    world_.send(data, bytes, verbena::rank{to}, verbena::tag{label});
  }
  void recv(void* data, std::size_t bytes, int from, int label) {
    world_.recv(data, bytes, verbena::rank{from}, verbena::tag{label});
  }
  request isend(const void* data, std::size_t bytes, int to, int label) {
    return world_.isend(data, bytes, verbena::rank{to}, verbena::tag{label});
  }
  request irecv(void* data, std::size_t bytes, int from, int label) {
    return world_.irecv(data, bytes, verbena::rank{from}, verbena::tag{label});
  }
  void wait_all(std::span<request> all) {
    for (request& one : all) one.wait();
  }
  void barrier() { verbena::barrier(world_); }
  void allreduce(const float* in, float* out, std::size_t count) {
    verbena::allreduce(world_, in, out, count, verbena::element::f32, verbena::reduction::sum);
  }
  void broadcast(void* data, std::size_t bytes) { verbena::broadcast(world_, data, bytes, first); }
  void reduce(const float* in, float* out, std::size_t count) {
    verbena::reduce(world_, in, out, count, verbena::element::f32, verbena::reduction::sum, first);
  }
  void gather(const void* in, void* out, std::size_t bytes) {
    verbena::gather(world_, in, out, bytes, first);
  }
  void scatter(const void* in, void* out, std::size_t bytes) {
    verbena::scatter(world_, in, out, bytes, first);
  }
  void allgather(const void* in, void* out, std::size_t bytes) { verbena::allgather(world_, in, out, bytes); }
  void alltoall(const void* in, void* out, std::size_t bytes) { verbena::alltoall(world_, in, out, bytes); }
  exposed expose(std::size_t bytes) {
    exposed made{std::pmr::vector<std::byte>(bytes, &verbena::memory(context_)), {}, {}, {}};
    made.region = verbena::register_memory(world_, made.bytes);
    made.keys.resize(static_cast<std::size_t>(size()));
    const verbena::remote_key mine = made.region.key();
    verbena::allgather(world_, &mine, made.keys.data(), sizeof mine);
    return made;
  }
  void conceal(exposed& memory) {
    barrier();
    memory.region = {};
  }
  void put_and_flush(exposed& memory, const void* data, std::size_t bytes, int to, std::size_t offset) {
    verbena::put(world_, data, bytes, verbena::rank{to}, memory.keys[static_cast<std::size_t>(to)], offset);
    verbena::flush(world_, verbena::rank{to});
  }
  void get_and_flush(exposed& memory, void* data, std::size_t bytes, int from, std::size_t offset) {
    verbena::get(world_, data, bytes, verbena::rank{from}, memory.keys[static_cast<std::size_t>(from)],
                 offset);
  }
  void start_put(exposed& memory, const void* data, std::size_t bytes, int to, std::size_t offset) {
    memory.under_way.push_back(verbena::iput(world_, data, bytes, verbena::rank{to},
                                             memory.keys[static_cast<std::size_t>(to)], offset));
  }
  void start_get(exposed& memory, void* data, std::size_t bytes, int from, std::size_t offset) {
    memory.under_way.push_back(verbena::iget(world_, data, bytes, verbena::rank{from},
                                             memory.keys[static_cast<std::size_t>(from)], offset));
  }
  void finish_puts(exposed& memory, int to) {
    finish_gets(memory, to);
    verbena::flush(world_, verbena::rank{to});
  }
  void finish_gets(exposed& memory, int) {
    wait_all(memory.under_way);
    memory.under_way.clear();
  }
  void sync(exposed&) {}
  [[noreturn]] void fail(const std::string& why) { context_.abort(1, why); }
  static std::string library() { return "verbena " + std::string(verbena::version()); }

 private:
  static constexpr verbena::rank first{0};

  verbena::context context_;
  verbena::communicator world_ = context_.world();
};

static_assert(one_sided_ranks<verbena_ranks>);

}  // namespace bench
