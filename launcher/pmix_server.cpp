#include "launcher/pmix_server.hpp"

#include "base/check.hpp"
#include "launcher/environment.hpp"
#include "launcher/words.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <net/if.h>
#include <pmix.h>
#include <pmix_server.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace verbena::launcher {
namespace {

// libpmix hands no user data to these callbacks and there is one server per process: so one queue per
// process.
struct event_queue {
  std::mutex mutex;
  std::vector<pmix_event> events;
  int fd = -1;
  // Of libpmix's questions that other hosts must answer: ticket, whom to call. One answer each, then it is forgotten.
  std::uint64_t tickets = 0;
  std::map<std::uint64_t, std::pair<pmix_modex_cbfunc_t, void*>> open;
  bool many_hosts = false;
};
event_queue& queue() {
  static event_queue* const q = new event_queue;  // never destroyed: libpmix's threads outlive main
  return *q;
}

void put(pmix_event event) {
  event_queue& q = queue();
  {
    const std::lock_guard lock{q.mutex};
    q.events.push_back(std::move(event));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(q.fd, &one, sizeof one);
}

pmix_status_t on_connected(const pmix_proc_t* proc, void*, pmix_info_t*, std::size_t, pmix_op_cbfunc_t,
                           void*) {
  put({pmix_event::kind::joined, proc->rank});
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_finalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*) {
  put({pmix_event::kind::left, proc->rank});
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_abort(const pmix_proc_t* proc, void*, int status, const char* text, pmix_proc_t*,
                       std::size_t, pmix_op_cbfunc_t, void*) {
  put({pmix_event::kind::aborted, proc->rank, status, text != nullptr ? text : "", 0, {}});
  return PMIX_OPERATION_SUCCEEDED;
}

std::uint64_t open_ticket(pmix_modex_cbfunc_t done, void* cookie) {
  event_queue& q = queue();
  const std::lock_guard lock{q.mutex};
  q.open.emplace(++q.tickets, std::pair{done, cookie});
  return q.tickets;
}

void answer(std::uint64_t ticket, bool good, std::string_view data) {
  event_queue& q = queue();
  std::pair<pmix_modex_cbfunc_t, void*> whom{nullptr, nullptr};
  {
    const std::lock_guard lock{q.mutex};
    const auto at = q.open.find(ticket);
    if (at == q.open.end()) return;
    whom = at->second;
    q.open.erase(at);
  }
  // Libpmix reads it on its own thread, later.
  auto* const bytes = new std::string(data);
  whom.first(
      good ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, bytes->data(), bytes->size(), whom.second,
      [](void* p) { delete static_cast<std::string*>(p); }, bytes);
}

/// With all participants on this host, what libpmix has collected is the whole result.
pmix_status_t on_fence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t*, std::size_t,
                       char* data, std::size_t bytes, pmix_modex_cbfunc_t done, void* cookie) {
  if (!queue().many_hosts) {
    done(
        PMIX_SUCCESS, data, bytes, cookie, [](void* p) { std::free(p); }, data);
    return PMIX_SUCCESS;
  }
  pmix_event event{pmix_event::kind::fence};
  for (std::size_t i = 0; i < count; ++i)
    if (procs[i].rank != PMIX_RANK_WILDCARD) event.ranks.push_back(procs[i].rank);
  std::sort(event.ranks.begin(), event.ranks.end());
  event.text.assign(data != nullptr ? data : "", data != nullptr ? bytes : 0);
  std::free(data);
  event.ticket = open_ticket(done, cookie);
  put(std::move(event));
  return PMIX_SUCCESS;
}

/// Asked only for ranks of other hosts.
pmix_status_t on_modex(const pmix_proc_t* proc, const pmix_info_t*, std::size_t, pmix_modex_cbfunc_t done,
                       void* cookie) {
  if (!queue().many_hosts) return PMIX_ERR_NOT_FOUND;
  pmix_event event{pmix_event::kind::modex_wanted, proc->rank};
  event.ticket = open_ticket(done, cookie);
  put(std::move(event));
  return PMIX_SUCCESS;
}

/// Counts down asynchronous calls of libpmix.
struct completion {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint32_t left = 0;
  pmix_status_t worst = PMIX_SUCCESS;

  static void done(pmix_status_t status, void* self) {
    auto& c = *static_cast<completion*>(self);
    const std::lock_guard lock{c.mutex};
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) c.worst = status;
    if (--c.left == 0) c.changed.notify_all();
  }
  pmix_status_t wait() {
    std::unique_lock lock{mutex};
    changed.wait(lock, [this] { return left == 0; });
    return worst;
  }
};

/// Builds pmix_info_t lists; frees them at the end.
class info_list {
 public:
  info_list() = default;
  info_list(const info_list&) = delete;
  info_list& operator=(const info_list&) = delete;
  ~info_list() {
    for (pmix_info_t& each : infos_) PMIX_INFO_DESTRUCT(&each);
  }
  void add(const char* key, std::uint32_t value) { load(key, &value, PMIX_UINT32); }
  void add_rank(const char* key, pmix_rank_t value) { load(key, &value, PMIX_PROC_RANK); }
  void add_small(const char* key, std::uint32_t value) {
    const auto narrow = static_cast<std::uint16_t>(value);
    load(key, &narrow, PMIX_UINT16);
  }
  void add(const char* key, const std::string& value) { load(key, value.c_str(), PMIX_STRING); }
  void add_regex(const char* key, const char* value) { load(key, value, PMIX_REGEX); }
  void add_array(const char* key, info_list& inner) {
    pmix_data_array_t array;
    array.type = PMIX_INFO;
    array.size = inner.infos_.size();
    array.array = inner.infos_.data();
    load(key, &array, PMIX_DATA_ARRAY);  // copies
  }
  void load(const char* key, const void* value, pmix_data_type_t type) {
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, key, value, type);
    infos_.push_back(info);
  }
  pmix_info_t* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  std::vector<pmix_info_t> infos_;
};

/// A topology of nothing but processing units, made without a look at the machine; lives as long as the
/// server.
hwloc_topology_t flat_topology() {
  hwloc_topology_t topology = nullptr;
  const long cores = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  if (hwloc_topology_set_synthetic(topology, fmt::format("pu:{}", cores).c_str()) != 0 ||
      hwloc_topology_load(topology) != 0)
    return nullptr;
  return topology;
}

/// "0,1,4" for each host, with ';' between them.
std::vector<std::string> ranks_of_hosts(const pmix_job& job) {
  std::vector<std::string> lists(job.hosts.size());
  for (std::uint32_t r = 0; r < job.size(); ++r) {
    std::string& list = lists[job.host_of[r]];
    list += fmt::format("{}{}", list.empty() ? "" : ",", r);
  }
  return lists;
}

void describe_job(const pmix_job& job, info_list& keys) {
  const std::vector<std::string> lists = ranks_of_hosts(job);
  char* nodes = nullptr;
  char* places = nullptr;
  PMIx_generate_regex(joined(job.hosts, ",").c_str(), &nodes);
  PMIx_generate_ppn(joined(lists, ";").c_str(), &places);
  keys.add(PMIX_JOBID, job.name);
  keys.add_regex(PMIX_NODE_MAP, nodes);
  keys.add_regex(PMIX_PROC_MAP, places);
  std::free(nodes);
  std::free(places);
  for (const char* key : {PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS}) keys.add(key, job.size());
  std::vector<std::uint32_t> on_host(job.hosts.size()), local_rank(job.size());
  for (std::uint32_t r = 0; r < job.size(); ++r) local_rank[r] = on_host[job.host_of[r]]++;
  for (const char* key : {PMIX_LOCAL_SIZE, PMIX_NODE_SIZE}) keys.add(key, on_host[job.here]);
  const std::uint32_t programs = job.program_of.back() + 1;
  keys.add(PMIX_JOB_NUM_APPS, programs);
  keys.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(job.hosts.size()));
  keys.add(PMIX_LOCAL_PEERS, lists[job.here]);
  const auto leader = std::find(job.host_of.begin(), job.host_of.end(), job.here) - job.host_of.begin();
  keys.add_rank(PMIX_LOCALLDR, static_cast<pmix_rank_t>(leader));
  std::vector<std::uint32_t> first(programs), count(programs);
  for (std::uint32_t r = job.size(); r-- > 0;) {
    first[job.program_of[r]] = r;
    ++count[job.program_of[r]];
  }
  for (std::uint32_t p = 0; p < programs; ++p) {
    info_list program;
    program.add(PMIX_APPNUM, p);
    program.add(PMIX_APP_SIZE, count[p]);
    program.add_rank(PMIX_APPLDR, first[p]);
    keys.add_array(PMIX_APP_INFO_ARRAY, program);
  }
  for (std::uint32_t r = 0; r < job.size(); ++r) {
    info_list rank;
    rank.add_rank(PMIX_RANK, r);
    rank.add_rank(PMIX_GLOBAL_RANK, r);
    rank.add_rank(PMIX_APP_RANK, r - first[job.program_of[r]]);
    rank.add_small(PMIX_LOCAL_RANK, local_rank[r]);
    rank.add_small(PMIX_NODE_RANK, local_rank[r]);
    rank.add(PMIX_APPNUM, job.program_of[r]);
    rank.add(PMIX_NODEID, job.host_of[r]);
    rank.add(PMIX_HOSTNAME, job.hosts[job.host_of[r]]);
    if (job.host_of[r] == job.here) {
      if (local_rank[r] < job.cpuset.size()) rank.add(PMIX_CPUSET, "hwloc:" + job.cpuset[local_rank[r]]);
      if (local_rank[r] < job.locality.size()) rank.add(PMIX_LOCALITY_STRING, job.locality[local_rank[r]]);
    }
    keys.add_array(PMIX_PROC_INFO_ARRAY, rank);
  }
}

}  // namespace

pmix_server::pmix_server() : event_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  base::check(static_cast<bool>(event_fd_), "eventfd succeeds");
  queue().fd = event_fd_.get();
}

pmix_server::~pmix_server() {
  if (preparing_.joinable()) preparing_.join();
}

std::string pmix_server::version() {
  // "OpenPMIx 4.2.2, repo rev: …" or similar: the first word that begins with a digit.
  const std::string text = PMIx_Get_version();
  const std::size_t begin = text.find_first_of("0123456789");
  return begin == std::string::npos ? text : text.substr(begin, text.find_first_of(", \n", begin) - begin);
}

/// The usual cause where it can be seen: libpmix speaks TCP over the loopback interface.
static std::string likely_cause() {
  const base::unique_fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  const bool known = socket && ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0;
  return known && (request.ifr_flags & IFF_UP) == 0 ? "; the loopback interface is down (ip link set lo up)"
                                                    : "";
}

std::string pmix_server::describe(const char* call, int status) const {
  return fmt::format(
      "cannot start the PMIx server: {}: {} (libpmix {}, built with {}.{}.{}); -v shows its own words{}",
      call, PMIx_Error_string(status), version(), PMIX_VERSION_MAJOR, PMIX_VERSION_MINOR,
      PMIX_VERSION_RELEASE, likely_cause());
}

namespace {

/// What a server around us has told its clients, such as their host's name, is not for ours.
void forget_outer_server() {
  std::vector<std::string> names;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view name = std::string_view(*each).substr(0, std::strcspn(*each, "="));
    if (name.starts_with("PMIX_") && belongs_to_a_job(name)) names.emplace_back(name);
  }
  for (const std::string& each : names) ::unsetenv(each.c_str());
}

}  // namespace

void pmix_server::prepare() {
  forget_outer_server();
  ::setenv("PMIX_MCA_gds", "hash", 1);
  // A namespace that nobody can guess is the proof; credentials by user id would refuse ranks in user
  // namespaces, and libmunge is left out.
  ::setenv("PMIX_MCA_psec", "none", 1);
  // Files with parameters for libpmix are meant for its clients and tools; to read them, comments and all, takes a tenth of
  // all its instructions. What a user puts into the environment counts.
  ::setenv("PMIX_MCA_mca_base_param_files", "none", 0);
  // Its plugins are for compression and for batch systems: looking for them costs more than they are worth here.
  ::setenv("PMIX_MCA_mca_base_component_disable_dlopen", "1", 0);
  ::setenv("PMIX_MCA_mca_base_component_path", "", 0);
  ::setenv("PMIX_MCA_pcompress_base_silence_warning", "1", 0);

  static pmix_server_module_t callbacks{};  // libpmix copies it, but may look at it later in other releases
  callbacks.client_connected2 = on_connected;
  callbacks.client_finalized = on_finalized;
  callbacks.abort = on_abort;
  callbacks.fence_nb = on_fence;
  callbacks.direct_modex = on_modex;

  preparing_ = std::thread([this] {
    info_list options;
    pmix_topology_t topology{};
    topology.topology = flat_topology();
    if (topology.topology != nullptr) {
      topology.source = ::strdup("hwloc");
      options.load(PMIX_TOPOLOGY2, &topology, PMIX_TOPO);
    }
    prepared_ = PMIx_server_init(&callbacks, options.data(), options.size());
  });
}

std::string pmix_server::start(const pmix_job& job) {
  preparing_.join();
  pmix_status_t status = prepared_;
  if (status != PMIX_SUCCESS) return describe("PMIx_server_init", status);

  queue().many_hosts = job.hosts.size() > 1;  // no rank has started: nobody asks yet
  job_name_ = job.name;
  info_list keys;
  describe_job(job, keys);
  const auto local = static_cast<int>(std::count(job.host_of.begin(), job.host_of.end(), job.here));
  // Not on the stack: the callback may still be letting go of the lock when we go on.
  auto* const registered = new completion;
  registered->left = 1;
  status = PMIx_server_register_nspace(job.name.c_str(), local, keys.data(), keys.size(), &completion::done,
                                       registered);
  if (status != PMIX_SUCCESS) return describe("PMIx_server_register_nspace", status);
  status = registered->wait();
  if (status != PMIX_SUCCESS) return describe("registering the job", status);
  // Libpmix does these one after the other on its own thread, to which a rank's connection can only come
  // after them: so nothing waits for them.
  for (std::uint32_t r = 0; r < job.size(); ++r) {
    if (job.host_of[r] != job.here) continue;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job.name.c_str(), r);
    status = PMIx_server_register_client(
        &proc, ::getuid(), ::getgid(), nullptr, [](pmix_status_t, void*) {}, nullptr);
    if (status != PMIX_SUCCESS) return describe("PMIx_server_register_client", status);
  }

  pmix_proc_t first;
  const auto leader = std::find(job.host_of.begin(), job.host_of.end(), job.here) - job.host_of.begin();
  PMIX_LOAD_PROCID(&first, job.name.c_str(), static_cast<pmix_rank_t>(leader));
  char** variables = nullptr;
  status = PMIx_server_setup_fork(&first, &variables);
  if (status != PMIX_SUCCESS) return describe("PMIx_server_setup_fork", status);
  for (char** v = variables; v != nullptr && *v != nullptr; ++v) {
    if (std::strncmp(*v, "PMIX_RANK=", 10) != 0) environment_.emplace_back(*v);
    std::free(*v);
  }
  std::free(variables);
  environment_.emplace_back("PMIX_MCA_gds=hash");
  return {};
}

namespace {

pmix_status_t event_of(failure why) {
  switch (why) {
    case failure::to_start:
      return PMIX_ERR_PROC_FAILED_TO_START;
    case failure::by_abort:
      return PMIX_ERR_PROC_REQUESTED_ABORT;
    case failure::by_status:
      return PMIX_ERR_EXIT_NONZERO_TERM;
    case failure::without_leaving:
      return PMIX_ERR_PROC_TERM_WO_SYNC;
    case failure::none:
    case failure::by_signal:
    case failure::with_its_host:
      break;
  }
  return PMIX_ERR_PROC_ABORTED_BY_SIG;
}

}  // namespace

void pmix_server::tell_failure(std::uint32_t rank, failure why, int wait_status) {
  struct news {  // until libpmix has passed it on
    pmix_proc_t who;
    info_list about;
  };
  auto* const told = new news;
  PMIX_LOAD_PROCID(&told->who, job_name_.c_str(), rank);
  told->about.load(PMIX_EVENT_AFFECTED_PROC, &told->who, PMIX_PROC);
  const int code =
      WIFSIGNALED(wait_status) ? status_signal + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  told->about.load(PMIX_EXIT_CODE, &code, PMIX_INT);
  const auto done = [](pmix_status_t, void* p) { delete static_cast<news*>(p); };
  const pmix_status_t status = PMIx_Notify_event(event_of(why), &told->who, PMIX_RANGE_NAMESPACE,
                                                 told->about.data(), told->about.size(), done, told);
  if (status != PMIX_SUCCESS) delete told;  // nothing will be called
}

void pmix_server::answer_fence(std::uint64_t ticket, bool good, std::string_view data) {
  answer(ticket, good, data);
}

void pmix_server::answer_modex(std::uint64_t ticket, bool good, std::string_view data) {
  answer(ticket, good, data);
}

void pmix_server::fetch_modex(std::uint32_t rank, std::uint64_t ticket) {
  struct request {
    std::uint32_t rank;
    std::uint64_t ticket;
  };
  const auto on_ready = [](pmix_status_t status, char* data, std::size_t bytes, void* cookie) {
    const std::unique_ptr<request> asked{static_cast<request*>(cookie)};
    pmix_event event{pmix_event::kind::modex_ready, asked->rank, status};
    event.ticket = asked->ticket;
    if (status == PMIX_SUCCESS && data != nullptr) event.text.assign(data, bytes);
    put(std::move(event));
  };
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, job_name_.c_str(), rank);
  auto* const asked = new request{rank, ticket};
  const pmix_status_t status = PMIx_server_dmodex_request(&proc, on_ready, asked);
  if (status != PMIX_SUCCESS) on_ready(status, nullptr, 0, asked);
}

std::vector<pmix_event> pmix_server::take_events() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_fd_.get(), &count, sizeof count);
  event_queue& q = queue();
  const std::lock_guard lock{q.mutex};
  return std::exchange(q.events, {});
}

}  // namespace verbena::launcher
