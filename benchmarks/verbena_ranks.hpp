// Verbena under the measuring loops.
#pragma once

#include "ranks.hpp"

#include <verbena/verbena.hpp>

namespace bench {

class verbena_ranks {
 public:
  using request = verbena::request;

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
  [[noreturn]] void fail(const std::string& why) { context_.abort(1, why); }
  static std::string library() { return "verbena " + std::string(verbena::version()); }

 private:
  static constexpr verbena::rank first{0};

  verbena::context context_;
  verbena::communicator world_ = context_.world();
};

static_assert(message_ranks<verbena_ranks>);

}  // namespace bench
