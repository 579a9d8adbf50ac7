// How long it takes until a job stands: from the start of rdmarun to the moment when the last rank has
// joined, and to the end of a job that does nothing else. Started by hand; starts rdmarun with itself as the
// ranks.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/verbena.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace {

constexpr const char* begin_variable = "VB_STARTUP_BEGIN";
constexpr int usage = 2;

/// The same clock in all processes of the machine.
double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// As a rank: joins, says when to rank 0, which prints the latest.
int be_rank(double begin_ms) {
  verbena::context job;
  const double joined = now_ms() - begin_ms;
  const verbena::communicator world = job.world();
  if (world.rank().value != 0) {
    world.send(&joined, sizeof joined, verbena::rank{0}, verbena::tag{1});
    return 0;
  }
  double last = joined;
  for (int other = 1; other < world.size(); ++other) {
    double its = 0;
    world.recv(&its, sizeof its, verbena::rank{other}, verbena::tag{1});
    last = std::max(last, its);
  }
  fmt::print("{:.6f}\n", last);
  return 0;
}

struct times {
  double joined_ms, ended_ms;
};

/// One job; nothing if it failed.
std::optional<times> run_job(const std::string& rdmarun, const std::string& self, int ranks) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  std::vector<std::string> words = {rdmarun, "-q", "-n", fmt::format("{}", ranks), self};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const double begin = now_ms();
  ::setenv(begin_variable, fmt::format("{:.6f}", begin).c_str(), 1);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, rdmarun.c_str(), &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  std::string text;
  std::array<char, 256> bytes{};
  for (ssize_t count; failed == 0 && (count = ::read(ends[0], bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = -1;
  if (failed != 0 || ::waitpid(pid, &status, 0) != pid || status != 0) return std::nullopt;
  const double ended = now_ms() - begin;
  return times{std::strtod(text.c_str(), nullptr), ended};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// A number from 1 to `most`.
std::optional<int> parse(std::string_view text, int most) {
  int value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size() || value < 1 || value > most)
    return std::nullopt;
  return value;
}

int measure(int argc, char** argv) {
  int most = 64, repetitions = 9;
  std::string rdmarun = "rdmarun";
  for (int i = 1; i < argc; i += 2) {  // every option has a value
    const std::string_view option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const std::optional<int> number = parse(value, 100'000);
    if (option == "-n" && number) {
      most = *number;
    } else if (option == "-i" && number) {
      repetitions = *number;
    } else if (option == "--rdmarun" && !value.empty()) {
      rdmarun = value;
    } else {
      fmt::print(stderr,
                 "usage: vb_startup [-n MOST_RANKS] [-i REPETITIONS] [--rdmarun PATH]\n"
                 "Times of whole jobs of 1, 2, 4 … ranks, started one after the other (defaults: 64 ranks, 9 "
                 "times).\n");
      return option == "--help" || option == "-h" ? 0 : usage;
    }
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  fmt::print("# start-up, verbena {}, medians of {}\n# Ranks   Last join (ms)   End of job (ms)\n",
             verbena::version(), repetitions);
  for (int ranks = 1;; ranks = std::min(ranks * 2, most)) {
    std::vector<double> joined, ended;
    for (int i = 0; i < repetitions; ++i) {
      const auto one = run_job(rdmarun, self, ranks);
      if (!one) {
        fmt::print(stderr, "vb_startup: a job of {} ranks by '{}' failed\n", ranks, rdmarun);
        return 1;
      }
      joined.push_back(one->joined_ms);
      ended.push_back(one->ended_ms);
    }
    fmt::print("{:<7} {:>16.2f} {:>17.2f}\n", ranks, median(joined), median(ended));
    std::fflush(stdout);
    if (ranks == most) return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* begin = std::getenv(begin_variable);
  const bool is_rank = begin != nullptr && std::getenv("VERBENA_RANK") != nullptr && argc == 1;
  try {
    return is_rank ? be_rank(std::strtod(begin, nullptr)) : measure(argc, argv);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "vb_startup: {}\n", failure.what());
    return 1;
  }
}
