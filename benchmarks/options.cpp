#include "options.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

constexpr std::uint64_t large_message = 8192;
constexpr std::uint64_t slow_to_check = 65536;

struct defaults {
  kind what;
  const char* text;   ///< for --help
  const char* title;  ///< for the head of the table
  std::uint64_t min_size, max_size;
  repetitions small, large;
};

// Sizes and repetitions are OSU's.
constexpr repetitions often{100, 10000}, seldom{10, 1000};     // latencies of two
constexpr repetitions windows{10, 100}, large_windows{2, 20};  // bandwidths
constexpr repetitions calls{200, 1000}, large_calls{10, 100};  // collectives
constexpr defaults all_defaults[] = {
    {kind::latency, "One-way latency between rank 0 and rank 1: half a ping-pong.", "one-way latency", 0,
     4u << 20, often, seldom},
    {kind::bandwidth, "Bandwidth from rank 0 to rank 1: windows of messages in flight.", "bandwidth", 1,
     4u << 20, windows, large_windows},
    {kind::both_ways,
     "Bandwidth between rank 0 and rank 1 with windows of messages in both directions at once.",
     "bandwidth of both directions", 1, 4u << 20, windows, large_windows},
    {kind::pairs_bandwidth,
     "Bandwidth and message rate of all pairs at once: rank r sends to rank r + n/2, windows of messages in "
     "flight.",
     "bandwidth of all pairs", 1, 4u << 20, windows, large_windows},
    {kind::pairs_latency, "One-way latency with ping-pongs of all pairs at once: rank r with rank r + n/2.",
     "one-way latency, all pairs at once", 0, 4u << 20, often, seldom},
    {kind::put_latency, "Latency of a put by rank 0 into memory of rank 1, until it is there (flush).",
     "latency of a put and its flush", 1, 4u << 20, often, seldom},
    {kind::get_latency, "Latency of a get by rank 0 from memory of rank 1.", "latency of a get", 1, 4u << 20,
     often, seldom},
    {kind::put_bandwidth, "Bandwidth of puts by rank 0 into memory of rank 1: windows of puts, then a flush.",
     "bandwidth of puts", 1, 4u << 20, windows, large_windows},
    {kind::get_bandwidth, "Bandwidth of gets by rank 0 from memory of rank 1: windows of gets in flight.",
     "bandwidth of gets", 1, 4u << 20, windows, large_windows},
    {kind::allreduce, "Latency of an all-reduce (sum of floats) over all ranks.", "all-reduce, sum of floats",
     4, 1u << 20, calls, large_calls},
    {kind::barrier, "Latency of a barrier over all ranks.", "barrier", 0, 0, {200, 10000}, {200, 10000}},
    {kind::broadcast, "Latency of a broadcast from rank 0.", "broadcast from rank 0", 1, 1u << 20, calls,
     large_calls},
    {kind::reduce, "Latency of a reduction (sum of floats) to rank 0.", "reduction to rank 0, sum of floats",
     4, 1u << 20, calls, large_calls},
    {kind::gather, "Latency of a gather at rank 0; sizes are of one rank's block.",
     "gather at rank 0, bytes of each rank", 1, 1u << 20, calls, large_calls},
    {kind::scatter, "Latency of a scatter from rank 0; sizes are of one rank's block.",
     "scatter from rank 0, bytes for each rank", 1, 1u << 20, calls, large_calls},
    {kind::allgather, "Latency of an allgather; sizes are of one rank's block.",
     "allgather, bytes of each rank", 1, 1u << 20, calls, large_calls},
    {kind::alltoall, "Latency of an all-to-all exchange; sizes are of one rank's block for another.",
     "all-to-all, bytes of each rank for each", 1, 1u << 20, calls, large_calls}};

const defaults& defaults_of(kind what) {
  return *std::find_if(std::begin(all_defaults), std::end(all_defaults),
                       [&](const defaults& one) { return one.what == what; });
}

bool has_window(kind what) {
  return what == kind::bandwidth || what == kind::both_ways || what == kind::pairs_bandwidth ||
         what == kind::put_bandwidth || what == kind::get_bandwidth;
}

std::uint64_t parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const int shift = unit.empty() ? 0 : unit == "k" ? 10 : unit == "m" ? 20 : unit == "g" ? 30 : -1;
  if (failure != std::errc{} || shift < 0 || value > (std::uint64_t{1} << 40) >> shift)
    throw CLI::ValidationError("-m", fmt::format("'{}' is no message size such as 8, 64k or 4m", text));
  return value << shift;
}

void parse_list(std::string_view text, options& into) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    into.listed.push_back(parse_size(text.substr(at, comma - at)));
    at = comma + 1;
  }
  const auto [least, most] = std::minmax_element(into.listed.begin(), into.listed.end());
  into.min_size = *least;
  into.max_size = *most;
}

void parse_range(std::string_view text, options& into) {
  if (text.find(',') != std::string_view::npos) return parse_list(text, into);
  const auto colon = text.find(':');
  if (colon != std::string_view::npos) into.min_size = parse_size(text.substr(0, colon));
  into.max_size = parse_size(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (into.min_size > into.max_size)
    throw CLI::ValidationError("-m", fmt::format("'{}': the smallest size is above the largest", text));
}

bool of_floats(kind what) {
  return what == kind::allreduce || what == kind::reduce;
}

bool first_rank() {
  for (const char* name : {"VERBENA_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::strcmp(value, "0") == 0;
  return true;
}

}  // namespace

std::string title_of(const options& of) {
  const char* title = defaults_of(of.what).title;
  return has_window(of.what) ? fmt::format("{}, window {}", title, of.window) : title;
}

std::optional<int> parse(int argc, char** argv, options& into) {
  const defaults& by_kind = defaults_of(into.what);
  into.min_size = by_kind.min_size;
  into.max_size = by_kind.max_size;
  std::string range;
  CLI::App app{by_kind.text, into.program};
  if (into.what != kind::barrier)
    app.add_option(
           "-m", range,
           "smallest and largest message in bytes: MIN:MAX or MAX, or all sizes: A,B,...; k, m, g as suffix")
        ->type_name("MIN:MAX");
  app.add_option("-i", into.iterations,
                 "timed repetitions of each size; of a list of sizes also a list: N,N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("-x", into.warmup, "untimed repetitions before them")->check(CLI::Range(0, 1 << 30));
  if (has_window(into.what))
    app.add_option("-W", into.window, "messages in flight")->check(CLI::Range(1, 1 << 16));
  app.add_flag("-f", into.full, "all columns");
  app.add_flag(
      "-c", into.check,
      "check every byte of every repetition, warm-up included (large sizes are then repeated at most 100 "
      "times unless -i says otherwise, and a window holds at most 64 MiB)");
  app.add_flag("--pin", into.pin, "bind rank r to the r-th CPU allowed");
  app.add_option("--json", into.json,
                 "write the figures as JSON; '-': to standard output, instead of the table")
      ->type_name("FILE");
  app.footer(
      "Exit status: 0; 1 if data was wrong or the library failed; 2 if these words were not understood.");
  try {
    app.parse(argc, argv);
    if (!range.empty()) parse_range(range, into);
    if (into.iterations.size() > 1 && into.iterations.size() != into.listed.size())
      throw CLI::ValidationError("-i", fmt::format("{} repetitions for {} sizes listed",
                                                   into.iterations.size(), into.listed.size()));
    const auto odd = [](std::uint64_t size) { return size == 0 || size % sizeof(float) != 0; };
    if (of_floats(into.what) && std::any_of(into.listed.begin(), into.listed.end(), odd))
      throw CLI::ValidationError("-m", "a reduction of floats takes multiples of 4 bytes");
    if (of_floats(into.what) && into.max_size < sizeof(float))
      throw CLI::ValidationError("-m", "a reduction of floats needs at least 4 bytes");
  } catch (const CLI::Success& wanted_help) {
    return first_rank() ? app.exit(wanted_help) : 0;
  } catch (const CLI::ParseError& wrong) {
    if (first_rank()) fmt::print(stderr, "{}: {}; see {} --help\n", into.program, wrong.what(), into.program);
    // The others let it speak: a launcher ends the job when the first rank leaves with an error.
    if (!first_rank()) std::this_thread::sleep_for(std::chrono::seconds(1));
    return exit_usage;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> sizes(const options& of) {
  if (!of.listed.empty()) return of.listed;
  std::uint64_t smallest = of.min_size;
  if (of_floats(of.what)) smallest = std::max<std::uint64_t>(smallest & ~std::uint64_t{3}, sizeof(float));
  std::vector<std::uint64_t> list;
  for (std::uint64_t size = smallest; size <= of.max_size; size = size == 0 ? 1 : size * 2)
    list.push_back(size);
  return list;
}

repetitions repeat(const options& with, std::uint64_t size) {
  const defaults& by_kind = defaults_of(with.what);
  repetitions result = size > large_message ? by_kind.large : by_kind.small;
  if (with.check && size > slow_to_check) result.timed = std::min(result.timed, 100);
  if (!with.iterations.empty()) result.timed = with.iterations.front();
  if (with.iterations.size() > 1) {
    const auto at = std::find(with.listed.begin(), with.listed.end(), size) - with.listed.begin();
    result.timed = with.iterations[static_cast<std::size_t>(at)];
  }
  if (with.warmup) result.warmup = *with.warmup;
  return result;
}

void pin_to_cpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    throw std::runtime_error("cannot read the CPU mask");
  int left = index % CPU_COUNT(&allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed) || left-- > 0) ++cpu;
  CPU_ZERO(&allowed);
  CPU_SET(cpu, &allowed);
  if (sched_setaffinity(0, sizeof allowed, &allowed) != 0)
    throw std::runtime_error(fmt::format("cannot bind to CPU {}", cpu));
}

}  // namespace bench
