// What plain libibverbs does between two processes on one device, a core each: SENDs to and fro, RDMA Writes, single small SENDs.
// The bound that the verbs fabric is compared with, in the same guest or on the same machine. Nothing of the library's is used
// but the choice of device. Not installed.
//
//   verbs_raw [-d DEVICE[:PORT]] [JOB...]     without a job: a look at all
//     latency:BYTES:ROUNDS        a SEND and its answer; prints microseconds one way
//     writes:BYTES:ROUNDS         RDMA Writes, a window of them by one doorbell; prints MB/s
//     sends:BYTES:ROUNDS          SENDs, each by a doorbell of its own, answered after 64; prints messages/s
#include "base/clock.hpp"
#include "transport/verbs/device.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace verbena;
using namespace verbena::transport::verbs;

constexpr std::size_t largest = 1 << 20;
constexpr int depth = 64;

void must(bool worked, const char* what) {
  if (worked) return;
  fmt::print(stderr, "verbs_raw: {} failed\n", what);
  std::_Exit(1);
}

struct card {  ///< what the other side needs
  std::uint32_t number;
  std::uint32_t key;
  std::uint64_t address;
  std::uint16_t lid;
};

class side {
 public:
  side(const char* wanted, int socket) : device_(choose_device(wanted)), memory_(2 * largest) {
    if (!device_.context) {
      fmt::print(stderr, "verbs_raw: {}\n", device_.why);
      std::_Exit(1);
    }
    domain_ = ibv_alloc_pd(device_.context.get());
    queue_ = ibv_create_cq(device_.context.get(), 4 * depth, nullptr, nullptr, 0);
    must(domain_ != nullptr && queue_ != nullptr, "making a completion queue");
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    region_ = ibv_reg_mr(domain_, memory_.data(), memory_.size(), access);
    must(region_ != nullptr, "registering memory");
    ibv_qp_init_attr want{};
    want.send_cq = want.recv_cq = queue_;
    want.qp_type = IBV_QPT_RC;
    want.cap = {2 * depth, 2 * depth, 1, 1, 64};
    pair_ = ibv_create_qp(domain_, &want);
    must(pair_ != nullptr, "making a queue pair");
    const card mine{pair_->qp_num, region_->rkey, reinterpret_cast<std::uintptr_t>(memory_.data()),
                    device_.port.lid};
    must(::write(socket, &mine, sizeof mine) == sizeof mine &&
             ::read(socket, &there_, sizeof there_) == sizeof there_,
         "exchanging numbers");
    connect();
    for (int i = 0; i < depth; ++i) receive();
    char ready = 0;
    must(::write(socket, &ready, 1) == 1 && ::read(socket, &ready, 1) == 1, "meeting");
  }

  /// One way, microseconds.
  double ping_pong(bool first, std::size_t bytes, int rounds) {
    const base::nanoseconds start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      if (first) send(bytes);
      take();
      if (!first) send(bytes);
    }
    return static_cast<double>(base::steady_now() - start) / rounds / 2000;
  }

  /// MB/s. A window is under way until the last of it is answered.
  double writes(std::size_t bytes, int rounds) {
    const int window = bytes <= 1024 ? depth : 16;
    std::vector<ibv_send_wr> requests(static_cast<std::size_t>(window));
    ibv_sge piece{region_address(), static_cast<std::uint32_t>(bytes), region_->lkey};
    for (std::size_t w = 0; w < requests.size(); ++w) {
      ibv_send_wr& r = requests[w];
      r.sg_list = &piece;
      r.num_sge = 1;
      r.opcode = IBV_WR_RDMA_WRITE;
      r.wr.rdma = {there_.address + largest, there_.key};
      if (w + 1 < requests.size())
        r.next = &requests[w + 1];
      else
        r.send_flags = IBV_SEND_SIGNALED;
    }
    const base::nanoseconds start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      ibv_send_wr* bad = nullptr;
      must(ibv_post_send(pair_, requests.data(), &bad) == 0, "posting");
      await(IBV_WC_RDMA_WRITE);
    }
    const double microseconds = static_cast<double>(base::steady_now() - start) / 1000;
    return static_cast<double>(bytes) * window * rounds / microseconds;
  }

  /// Messages per second; `rounds` times 64 of them.
  double sends(bool first, std::size_t bytes, int rounds) {
    const base::nanoseconds start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      for (int k = 0; k < depth; ++k) {
        if (first)
          send(bytes);
        else
          take();
      }
      if (first)
        take();
      else
        send(4);
    }
    return depth * rounds / (static_cast<double>(base::steady_now() - start) / 1e9);
  }

 private:
  std::uintptr_t region_address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }

  void connect() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = device_.port_number;
    to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    must(ibv_modify_qp(pair_, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "INIT");
    to = {};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = device_.port.active_mtu;
    to.dest_qp_num = there_.number;
    to.max_dest_rd_atomic = 1;
    to.min_rnr_timer = 12;
    to.ah_attr.port_num = device_.port_number;
    to.ah_attr.dlid = there_.lid;
    if (device_.ethernet()) {
      to.ah_attr.is_global = 1;
      to.ah_attr.grh = {device_.gid, 0, device_.gid_index, 64, 0};
    }
    must(ibv_modify_qp(pair_, &to,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    to.qp_state = IBV_QPS_RTS;
    to.timeout = 18;  // a second: an emulated processor may stand still for long
    to.retry_cnt = 6;
    to.rnr_retry = 6;
    to.max_rd_atomic = 1;
    must(ibv_modify_qp(pair_, &to,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
  }
  void receive() {
    ibv_sge piece{region_address() + largest, largest, region_->lkey};
    ibv_recv_wr request{}, *bad = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    must(ibv_post_recv(pair_, &request, &bad) == 0, "posting a receive");
  }
  /// The next message, and its place in the queue is free again.
  void take() {
    await(IBV_WC_RECV);
    receive();
  }
  void send(std::size_t bytes) {
    ibv_sge piece{region_address(), static_cast<std::uint32_t>(bytes), region_->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    if (++sent_ % 16 == 0) request.send_flags = IBV_SEND_SIGNALED;
    if (bytes <= 32) request.send_flags |= IBV_SEND_INLINE;
    must(ibv_post_send(pair_, &request, &bad) == 0, "posting");
  }
  void await(ibv_wc_opcode what) {
    for (ibv_wc wc;;) {
      if (ibv_poll_cq(queue_, 1, &wc) == 0) continue;
      must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
      if (wc.opcode == what) return;
    }
  }

  device_choice device_;
  std::vector<char> memory_;
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_qp* pair_ = nullptr;
  card there_{};
  unsigned sent_ = 0;
};

struct job {
  std::string what;
  std::size_t bytes = 0;
  int rounds = 0;
};

job read_job(const char* text) {
  char name[16] = {};
  job j;
  const bool whole = std::sscanf(text, "%15[a-z]:%zu:%d", name, &j.bytes, &j.rounds) == 3;
  j.what = name;
  if (!whole || j.bytes > largest || j.rounds < 1 ||
      (j.what != "latency" && j.what != "writes" && j.what != "sends")) {
    fmt::print(stderr, "verbs_raw: '{}' is no job such as latency:8:1000, writes:65536:10 or sends:8:100\n",
               text);
    std::_Exit(2);
  }
  return j;
}

/// To the first or second core this process may use.
void bind_to_core(std::size_t index) {
  cpu_set_t allowed, one;
  must(::sched_getaffinity(0, sizeof allowed, &allowed) == 0, "reading the cores allowed");
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && (index-- == 0)) CPU_SET(cpu, &one);
  if (CPU_COUNT(&one) == 1) ::sched_setaffinity(0, sizeof one, &one);
}

/// Both sides do the same jobs; the first one measures.
void work(side& me, bool first, const job& j, bool timed) {
  const int rounds = timed ? j.rounds : std::max(1, j.rounds / 10);
  double figure = 0;
  const char* unit = "us";
  if (j.what == "latency") {
    figure = me.ping_pong(first, j.bytes, rounds);
  } else if (j.what == "sends") {
    figure = me.sends(first, j.bytes, rounds);
    unit = "messages/s";
  } else if (first) {
    figure = me.writes(j.bytes, rounds);
    unit = "MB/s";
  }
  if (first && timed) fmt::print("{} {} {:.3f} {}\n", j.what, j.bytes, figure, unit);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<const char*> words(arguments + 1, arguments + count);
  const char* wanted = "";
  if (words.size() >= 2 && std::strcmp(words[0], "-d") == 0) {
    wanted = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.empty())
    words = {"latency:8:1000", "latency:1024:500", "latency:65536:50", "latency:1048576:8", "sends:8:50",
             "writes:8:50",    "writes:1024:20",   "writes:65536:8",   "writes:1048576:2"};
  std::vector<job> jobs;
  for (const char* word : words) jobs.push_back(read_job(word));
  int sockets[2];
  must(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  const pid_t child = ::fork();
  const bool first = child != 0;
  bind_to_core(first ? 0 : 1);
  const int socket = sockets[first ? 0 : 1];
  side me(wanted, socket);
  for (const job& j : jobs)
    for (const bool timed : {false, true}) {
      char token = 0;
      must(::write(socket, &token, 1) == 1 && ::read(socket, &token, 1) == 1, "meeting");
      work(me, first, j, timed);
    }
  if (!first) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
