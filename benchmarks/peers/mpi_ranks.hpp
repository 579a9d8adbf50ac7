// An MPI library under the same measuring loops. Compiled once against each MPI found.
#pragma once

#include "one_sided.hpp"
#include "ranks.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace bench {

class mpi_ranks {
 public:
  using request = MPI_Request;

  /// A window that MPI has allocated, open for the accesses of all.
  struct exposed {
    MPI_Win window = MPI_WIN_NULL;
    void* memory = nullptr;
    std::byte* data() { return static_cast<std::byte*>(memory); }
  };

  mpi_ranks() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  mpi_ranks(const mpi_ranks&) = delete;
  ~mpi_ranks() { MPI_Finalize(); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  void send(const void* data, std::size_t bytes, int to, int label) {
    MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, label, MPI_COMM_WORLD);
  }
  void recv(void* data, std::size_t bytes, int from, int label) {
    MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, label, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  request isend(const void* data, std::size_t bytes, int to, int label) {
    request one;
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, label, MPI_COMM_WORLD, &one);
    return one;
  }
  request irecv(void* data, std::size_t bytes, int from, int label) {
    request one;
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, label, MPI_COMM_WORLD, &one);
    return one;
  }
  void wait_all(std::span<request> all) {
    MPI_Waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void allreduce(const float* in, float* out, std::size_t count) {
    MPI_Allreduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void broadcast(void* data, std::size_t bytes) {
    MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  void reduce(const float* in, float* out, std::size_t count) {
    MPI_Reduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  }
  void gather(const void* in, void* out, std::size_t bytes) {
    const int n = static_cast<int>(bytes);
    MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  void scatter(const void* in, void* out, std::size_t bytes) {
    const int n = static_cast<int>(bytes);
    MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  void allgather(const void* in, void* out, std::size_t bytes) {
    const int n = static_cast<int>(bytes);
    MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
  }
  void alltoall(const void* in, void* out, std::size_t bytes) {
    const int n = static_cast<int>(bytes);
    MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
  }
  exposed expose(std::size_t bytes) {
    exposed made;
    bytes = (bytes + 4095) / 4096 * 4096;  // MPICH 4.0.2 mistakes where windows of 72 bytes lie
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made.memory,
                     &made.window);
    MPI_Win_lock_all(0, made.window);
    return made;
  }
  void conceal(exposed& memory) {
    MPI_Win_unlock_all(memory.window);
    MPI_Win_free(&memory.window);
  }
  void put_and_flush(exposed& memory, const void* data, std::size_t bytes, int to, std::size_t offset) {
    start_put(memory, data, bytes, to, offset);
    MPI_Win_flush(to, memory.window);
  }
  void get_and_flush(exposed& memory, void* data, std::size_t bytes, int from, std::size_t offset) {
    start_get(memory, data, bytes, from, offset);
    MPI_Win_flush(from, memory.window);
  }
  void start_put(exposed& memory, const void* data, std::size_t bytes, int to, std::size_t offset) {
    const int n = static_cast<int>(bytes);
    MPI_Put(data, n, MPI_BYTE, to, static_cast<MPI_Aint>(offset), n, MPI_BYTE, memory.window);
  }
  void start_get(exposed& memory, void* data, std::size_t bytes, int from, std::size_t offset) {
    const int n = static_cast<int>(bytes);
    MPI_Get(data, n, MPI_BYTE, from, static_cast<MPI_Aint>(offset), n, MPI_BYTE, memory.window);
  }
  void finish_puts(exposed& memory, int to) { MPI_Win_flush(to, memory.window); }
  void finish_gets(exposed& memory, int from) { MPI_Win_flush(from, memory.window); }
  void sync(exposed& memory) { MPI_Win_sync(memory.window); }
  [[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }
  static std::string library() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string first(text, static_cast<std::size_t>(length));
    first.resize(std::min(first.find_first_of(",\n"), first.size()));
    std::replace(first.begin(), first.end(), '\t', ' ');
    return first;
  }

 private:
  int rank_ = 0;
  int size_ = 0;
};

static_assert(one_sided_ranks<mpi_ranks>);

}  // namespace bench
