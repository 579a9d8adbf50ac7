// A PMIx client that knows nothing of this library and asks a server for everything that the library itself does without:
//   keys              what the server knows of the job
//   values            put and get, after fences with and without collection, of all ranks and of some, and with no fence at all
//   abort             the last rank aborts the job with status 9
//   watch HOW         the last rank ends by HOW (signal, status, silence, abort; host: not by itself); the others print what event tells them of it
// Prints what it has seen; exits with 1 and a word where something is wrong.
#include <pmix.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

pmix_proc_t self;
std::uint32_t size = 0;

[[noreturn]] void wrong(const std::string& what, pmix_status_t status = PMIX_SUCCESS) {
  std::printf("rank %u: %s (%s)\n", self.rank, what.c_str(), PMIx_Error_string(status));
  std::fflush(stdout);
  std::_Exit(1);
}

pmix_proc_t rank(std::uint32_t r) {
  pmix_proc_t whose = self;
  whose.rank = r;
  return whose;
}

/// As text, whatever the type; "" if it is not there.
std::string get(std::uint32_t of, const char* key) {
  const pmix_proc_t whose = rank(of);
  pmix_value_t* value = nullptr;
  if (PMIx_Get(&whose, key, nullptr, 0, &value) != PMIX_SUCCESS || value == nullptr) return {};
  std::string text = "of another type";
  if (value->type == PMIX_STRING) text = value->data.string;
  if (value->type == PMIX_UINT32) text = std::to_string(value->data.uint32);
  if (value->type == PMIX_UINT16) text = std::to_string(value->data.uint16);
  if (value->type == PMIX_PROC_RANK) text = std::to_string(value->data.rank);
  PMIX_VALUE_RELEASE(value);
  return text;
}

void publish(const char* key, const std::string& text) {
  pmix_value_t value;
  PMIX_VALUE_LOAD(&value, text.c_str(), PMIX_STRING);
  if (const pmix_status_t put = PMIx_Put(PMIX_GLOBAL, key, &value); put != PMIX_SUCCESS) wrong("put", put);
  PMIX_VALUE_DESTRUCT(&value);
  if (const pmix_status_t done = PMIx_Commit(); done != PMIX_SUCCESS) wrong("commit", done);
}

/// Of all ranks, or of some.
void fence(bool collect, const std::vector<pmix_proc_t>& whom = {}) {
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  const pmix_status_t met = PMIx_Fence(whom.empty() ? nullptr : whom.data(), whom.size(), &info, 1);
  if (met != PMIX_SUCCESS) wrong("fence", met);
}

std::string value_of(const char* key, std::uint32_t r) {
  return std::string(1000 + r, static_cast<char>('a' + r % 26)) + key;
}

void read_all(const char* key) {
  for (std::uint32_t r = 0; r < size; ++r)
    if (get(r, key) != value_of(key, r))
      wrong(std::string("value of rank ") + std::to_string(r) + " of " + key);
}

void values() {
  publish("collected", value_of("collected", self.rank));
  fence(true);
  read_all("collected");
  // Without collection each value is fetched from where it was published.
  publish("fetched", value_of("fetched", self.rank));
  fence(false);
  read_all("fetched");
  if (!get((self.rank + 1) % size, "nobody has published this").empty()) wrong("a value that is none");
  fence(false);
  // The even ranks among themselves, twice, while the others are elsewhere; then the others.
  for (const std::uint32_t odd : {0U, 1U}) {
    if (self.rank % 2 != odd) continue;
    std::vector<pmix_proc_t> some;
    for (std::uint32_t r = odd; r < size; r += 2) some.push_back(rank(r));
    const char* const key = odd != 0 ? "odd" : "even";
    publish(key, value_of(key, self.rank));
    fence(false, some);
    fence(true, some);
    for (std::uint32_t r = odd; r < size; r += 2)
      if (get(r, key) != value_of(key, r)) wrong("value of a part");
  }
  fence(false);
  std::printf("rank %u has read all\n", self.rank);
}

void keys() {
  std::printf(
      "rank %s of %s, program %s, local %s of %s (%s, led by %s), host %s, number %s of %s; the last one is "
      "on %s\n",
      get(self.rank, PMIX_GLOBAL_RANK).c_str(), get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE).c_str(),
      get(self.rank, PMIX_APPNUM).c_str(), get(self.rank, PMIX_LOCAL_RANK).c_str(),
      get(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE).c_str(), get(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS).c_str(),
      get(PMIX_RANK_WILDCARD, PMIX_LOCALLDR).c_str(), get(self.rank, PMIX_HOSTNAME).c_str(),
      get(self.rank, PMIX_NODEID).c_str(), get(PMIX_RANK_WILDCARD, PMIX_NUM_NODES).c_str(),
      get(size - 1, PMIX_HOSTNAME).c_str());
}

std::atomic<bool> told{false};

void on_event(std::size_t, pmix_status_t status, const pmix_proc_t*, pmix_info_t infos[], std::size_t count,
              pmix_info_t*, std::size_t, pmix_event_notification_cbfunc_fn_t done, void* cookie) {
  std::string who = "nobody", code = "nothing";
  for (std::size_t i = 0; i < count; ++i) {
    if (PMIX_CHECK_KEY(&infos[i], PMIX_EVENT_AFFECTED_PROC))
      who = std::to_string(infos[i].value.data.proc->rank);
    if (PMIX_CHECK_KEY(&infos[i], PMIX_EXIT_CODE)) code = std::to_string(infos[i].value.data.integer);
  }
  std::printf("rank %u: %s of rank %s, %s\n", self.rank, PMIx_Error_string(status), who.c_str(),
              code.c_str());
  std::fflush(stdout);
  if (done != nullptr) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, cookie);
  told = true;
}

void end_by(const std::string& how) {
  if (how == "signal") ::raise(SIGKILL);
  if (how == "status") ::_exit(7);
  if (how == "silence") ::_exit(0);
  if (how == "host") ::pause();
  PMIx_Abort(9, "nothing to do", nullptr, 0);
}

void watch(const std::string& how) {
  std::signal(SIGTERM, SIG_IGN);
  pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_EXIT_NONZERO_TERM,
                           PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_REQUESTED_ABORT};
  const pmix_status_t ready = PMIx_Register_event_handler(codes, 4, nullptr, 0, on_event, nullptr, nullptr);
  if (ready < 0) wrong("register", ready);
  fence(false);
  if (self.rank == size - 1) end_by(how);
  for (int i = 0; i < 3000 && !told; ++i) ::usleep(1000);
  if (!told) wrong("no event");
  ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (const pmix_status_t in = PMIx_Init(&self, nullptr, 0); in != PMIX_SUCCESS) wrong("init", in);
  size = static_cast<std::uint32_t>(std::atoi(get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE).c_str()));
  if (size == 0) wrong("no size");
  if (what == "keys") keys();
  if (what == "values") values();
  if (what == "abort") {
    fence(false);
    if (self.rank == size - 1) end_by(what);
    ::pause();
  }
  if (what == "watch") watch(argc > 2 ? argv[2] : "");
  PMIx_Finalize(nullptr, 0);
  return 0;
}
