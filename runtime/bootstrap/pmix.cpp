#include "runtime/bootstrap/pmix.hpp"

#include "runtime/bootstrap/inherited_segment.hpp"
#include "runtime/bootstrap/job_of_one.hpp"
#include "runtime/bootstrap/launcher_signs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pmix.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <atomic>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

namespace verbena::runtime {
namespace {

const char* from_environment(const char* name) {
  return std::getenv(name);
}

/// Libpmix talks to descriptor 2 when something displeases it; what matters is in the status it returns.
/// While this lives, descriptor 2 is a file in memory. Other threads' words are lost for that time: join
/// before starting any.
class silence {
 public:
  silence() : kept_(::fcntl(2, F_DUPFD_CLOEXEC, 3)) {
    const base::unique_fd memory{::memfd_create("verbena-stderr", MFD_CLOEXEC)};
    if (kept_ && memory) ::dup2(memory.get(), 2);
  }
  ~silence() {
    if (kept_) ::dup2(kept_.get(), 2);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;

 private:
  base::unique_fd kept_;
};

/// The result of one asynchronous call. Shared by the caller, who may give up, and the callback, which may
/// come late.
struct answer {
  std::mutex mutex;
  std::condition_variable arrived;
  bool there = false;
  pmix_status_t status = PMIX_SUCCESS;
  std::vector<std::byte> bytes;
  std::array<pmix_info_t, 2> wishes{};  ///< what was asked for: the library may look at it until it answers

  void wish(std::size_t at, const char* key, const void* value, pmix_data_type_t type) {
    PMIX_INFO_LOAD(&wishes[at], key, value, type);  // numbers only: nothing to free
  }

  using handle = std::shared_ptr<answer>;
  static void* for_callback(const handle& self);
  static handle from_callback(void* cookie);
  void set(pmix_status_t result) {
    const std::lock_guard lock{mutex};
    status = result;
    there = true;
    arrived.notify_all();
  }
  /// False if nothing came in time.
  bool wait(base::nanoseconds timeout) {
    std::unique_lock lock{mutex};
    if (timeout == base::never) {
      arrived.wait(lock, [this] { return there; });
      return true;
    }
    return arrived.wait_for(lock, std::chrono::nanoseconds{timeout}, [this] { return there; });
  }
};

/// The answers that libpmix still owes. Never destroyed: one may come while the process is already ending.
struct owed_answers {
  std::mutex mutex;
  std::map<const void*, answer::handle> handles;
  static owed_answers& all() {
    static owed_answers* const one = new owed_answers;
    return *one;
  }
};

void* answer::for_callback(const handle& self) {
  owed_answers& owed = owed_answers::all();
  const std::lock_guard lock{owed.mutex};
  owed.handles.emplace(self.get(), self);
  return self.get();
}

answer::handle answer::from_callback(void* cookie) {
  owed_answers& owed = owed_answers::all();
  const std::lock_guard lock{owed.mutex};
  return std::move(owed.handles.extract(cookie).mapped());
}

void on_fence(pmix_status_t status, void* cookie) {
  answer::from_callback(cookie)->set(status);
}

void on_value(pmix_status_t status, pmix_value_t* value, void* cookie) {
  const answer::handle result = answer::from_callback(cookie);
  if (status == PMIX_SUCCESS && value != nullptr && value->type == PMIX_BYTE_OBJECT) {
    const auto* begin = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
    result->bytes.assign(begin, begin + value->data.bo.size);
  } else if (status == PMIX_SUCCESS) {
    status = PMIX_ERR_TYPE_MISMATCH;
  }
  result->set(status);
}

/// Whole seconds for libpmix's own limit, never less than what we wait ourselves.
int pmix_seconds(base::nanoseconds timeout) {
  if (timeout == base::never) return 0;  // none
  return static_cast<int>(std::min<base::nanoseconds>(timeout / base::second + 1, 1'000'000));
}

/// "0,2,5" or "0-3,7" as a sorted list.
std::vector<std::uint32_t> parse_ranks(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    std::uint32_t first = 0, last = 0;
    const char* end = part.data() + part.size();
    const auto parsed = std::from_chars(part.data(), end, first);
    if (parsed.ec == std::errc{}) {
      last = first;
      if (parsed.ptr != end && *parsed.ptr == '-') std::from_chars(parsed.ptr + 1, end, last);
      for (std::uint32_t r = first; r <= last; ++r) ranks.push_back(r);
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

class pmix_bootstrap final : public bootstrap {
 public:
  pmix_bootstrap();
  const job_info& job() const override { return job_; }
  base::unique_fd segment() override;
  void publish(std::string_view key, std::span<const std::byte> value) override;
  void fence(base::nanoseconds timeout) override;
  std::optional<std::vector<std::byte>> lookup(std::uint32_t rank, std::string_view key,
                                               base::nanoseconds timeout) override;
  [[noreturn]] void abort(int status, std::string_view why) override;
  void leave() override;

 private:
  template <class Read>
  bool read_key(const char* key, pmix_rank_t rank, const Read& read) const;

  job_info job_;
  pmix_proc_t self_{};
  bool uncommitted_ = false;
  bool left_ = false;
};

[[noreturn]] void cannot_join(const char* call, pmix_status_t status) {
  const char* server = from_environment("PMIX_VERSION");
  throw error(
      errc::not_in_job,
      fmt::format("cannot join the job: {}: {} (library: {}; server: {}): is the launcher that started this "
                  "process still there, and of a matching release?",
                  call, PMIx_Error_string(status), PMIx_Get_version(),
                  server != nullptr ? server : "unknown"));
}

pmix_bootstrap::pmix_bootstrap() {
  static std::atomic<bool> taken{false};  // as libpmix itself, the place in the job is one per process
  if (taken)
    throw error(errc::invalid_argument,
                "this process has joined its job already: one context is all that a rank can make, once");
  {
    const silence quiet;
    const pmix_status_t status = PMIx_Init(&self_, nullptr, 0);
    if (status != PMIX_SUCCESS) cannot_join("PMIx_Init", status);
  }
  taken = true;
  job_.name = self_.nspace;
  job_.self = self_.rank;
  const bool sized = read_key(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD, [this](const pmix_value_t& value) {
    if (value.type != PMIX_UINT32) return false;
    job_.size = value.data.uint32;
    return true;
  });
  if (!sized || job_.self >= job_.size) cannot_join("reading the size of the job", PMIX_ERR_NOT_FOUND);
  read_key(PMIX_LOCAL_PEERS, PMIX_RANK_WILDCARD, [this](const pmix_value_t& value) {
    if (value.type != PMIX_STRING) return false;
    job_.local_ranks = parse_ranks(value.data.string);
    return true;
  });
  if (!std::binary_search(job_.local_ranks.begin(), job_.local_ranks.end(), job_.self))
    job_.local_ranks = {job_.self};  // a server that does not tell: nobody is taken for a neighbour
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  job_.host = host[0] == '\0' ? "localhost" : host.data();
  job_.launched_by = name_of_launcher(from_environment);
}

/// Reads a key of the job or of a rank that the server knows from the start; false if it does not, or `read`
/// refuses.
template <class Read>
bool pmix_bootstrap::read_key(const char* key, pmix_rank_t rank, const Read& read) const {
  pmix_proc_t proc = self_;
  proc.rank = rank;
  pmix_info_t only_known;
  PMIX_INFO_CONSTRUCT(&only_known);
  const bool yes = true;
  PMIX_INFO_LOAD(&only_known, PMIX_OPTIONAL, &yes, PMIX_BOOL);
  pmix_value_t* value = nullptr;
  const pmix_status_t status = PMIx_Get(&proc, key, &only_known, 1, &value);
  PMIX_INFO_DESTRUCT(&only_known);
  const bool good = status == PMIX_SUCCESS && value != nullptr && read(*value);
  if (value != nullptr) PMIX_VALUE_RELEASE(value);
  return good;
}

base::unique_fd pmix_bootstrap::segment() {
  const char* variable = from_environment("VERBENA_SEGMENT");
  return variable != nullptr ? find_inherited_segment(variable) : base::unique_fd{};
}

void pmix_bootstrap::publish(std::string_view key, std::span<const std::byte> value) {
  pmix_value_t blob{};  // points at the caller's bytes: PMIx_Put copies
  blob.type = PMIX_BYTE_OBJECT;
  blob.data.bo.bytes = reinterpret_cast<char*>(const_cast<std::byte*>(value.data()));
  blob.data.bo.size = value.size();
  const std::string name{key};
  const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, name.c_str(), &blob);
  if (status != PMIX_SUCCESS)
    throw error(errc::system,
                fmt::format("cannot publish '{}' to the job: PMIx_Put: {}", key, PMIx_Error_string(status)));
  uncommitted_ = true;
}

void pmix_bootstrap::fence(base::nanoseconds timeout) {
  if (uncommitted_) {
    const pmix_status_t status = PMIx_Commit();
    if (status != PMIX_SUCCESS)
      throw error(errc::system,
                  fmt::format("cannot publish to the job: PMIx_Commit: {}", PMIx_Error_string(status)));
    uncommitted_ = false;
  }
  const auto result = std::make_shared<answer>();
  const bool yes = true;
  result->wish(0, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  // The server gets a later limit than ours: it would answer the ranks one by one, we can say what was waited
  // for.
  const int limit = pmix_seconds(timeout) + (timeout == base::never ? 0 : 5);
  result->wish(1, PMIX_TIMEOUT, &limit, PMIX_INT);
  void* cookie = answer::for_callback(result);
  pmix_status_t status = PMIx_Fence_nb(nullptr, 0, result->wishes.data(), 2, &on_fence, cookie);
  if (status != PMIX_SUCCESS) answer::from_callback(cookie);  // no call will come
  const bool in_time = status != PMIX_SUCCESS || result->wait(timeout);
  if (in_time && status == PMIX_SUCCESS) status = result->status;
  if (!in_time || status == PMIX_ERR_TIMEOUT)
    throw error(
        errc::timed_out,
        fmt::format(
            "rank {} on {}: waited {:.0f} s for all {} ranks of the job to meet, and not all came: has "
            "one ended, or not joined? (VERBENA_JOIN_TIMEOUT)",
            job_.self, job_.host, static_cast<double>(timeout) / 1e9, job_.size));
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    throw error(errc::peer_failed,
                fmt::format("rank {} on {}: the meeting of all ranks failed: PMIx_Fence: {}", job_.self,
                            job_.host, PMIx_Error_string(status)));
}

std::optional<std::vector<std::byte>> pmix_bootstrap::lookup(std::uint32_t rank, std::string_view key,
                                                             base::nanoseconds timeout) {
  pmix_proc_t proc = self_;
  proc.rank = rank;
  const std::string name{key};
  const auto result = std::make_shared<answer>();
  const int seconds = pmix_seconds(timeout);
  result->wish(0, PMIX_TIMEOUT, &seconds, PMIX_INT);
  void* cookie = answer::for_callback(result);
  const pmix_status_t status = PMIx_Get_nb(&proc, name.c_str(), result->wishes.data(), 1, &on_value, cookie);
  if (status != PMIX_SUCCESS) {
    answer::from_callback(cookie);
    return std::nullopt;
  }
  if (!result->wait(timeout) || result->status != PMIX_SUCCESS) return std::nullopt;
  return std::move(result->bytes);
}

void pmix_bootstrap::abort(int status, std::string_view why) {
  flush_if_free();
  // rdmarun prints the reason in its one line; other launchers may not.
  if (job_.launched_by != "rdmarun")
    fmt::print(stderr, "verbena: rank {} on {}: aborted the job with status {}{}{}\n", job_.self, job_.host,
               status, why.empty() ? "" : ": ", why);
  const std::string text{why};
  PMIx_Abort(status, text.c_str(), nullptr, 0);
  ::_exit((status & 0xff) != 0 ? status : 1);
}

void pmix_bootstrap::leave() {
  if (left_) return;
  left_ = true;
  const silence quiet;
  PMIx_Finalize(nullptr, 0);
}

}  // namespace

std::unique_ptr<bootstrap> make_pmix_bootstrap(const base::settings& settings) {
  if (settings.singleton) return std::make_unique<job_of_one>();
  if (has_pmix_server(from_environment)) return std::make_unique<pmix_bootstrap>();
  if (std::string refused = refusal_without_server(from_environment); !refused.empty())
    throw error(errc::not_in_job, refused);
  return std::make_unique<job_of_one>();
}

}  // namespace verbena::runtime
