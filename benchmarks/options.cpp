#include "options.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

constexpr std::uint64_t large_message = 8192;
constexpr std::uint64_t slow_to_check = 65536;

struct defaults {
  const char* text;
  std::uint64_t min_size, max_size;
  repetitions small, large;
};

const defaults& defaults_of(kind what) {
  static const defaults latency{
      "One-way latency between rank 0 and rank 1: half a ping-pong.", 0, 4u << 20, {100, 10000}, {10, 1000}};
  static const defaults bandwidth{
      "Bandwidth from rank 0 to rank 1: windows of messages in flight.", 1, 4u << 20, {10, 100}, {2, 20}};
  static const defaults allreduce{
      "Latency of an all-reduce (sum of floats) over all ranks.", 4, 1u << 20, {200, 1000}, {10, 100}};
  static const defaults barrier{"Latency of a barrier over all ranks.", 0, 0, {200, 10000}, {200, 10000}};
  static const defaults reduce{
      "Latency of a reduction (sum of floats) to rank 0.", 4, 1u << 20, {200, 1000}, {10, 100}};
  static const defaults broadcast{"Latency of a broadcast from rank 0.", 1, 1u << 20, {200, 1000}, {10, 100}};
  static const defaults gather{
      "Latency of a gather at rank 0; sizes are of one rank's block.", 1, 1u << 20, {200, 1000}, {10, 100}};
  static const defaults scatter{"Latency of a scatter from rank 0; sizes are of one rank's block.",
                                1,
                                1u << 20,
                                {200, 1000},
                                {10, 100}};
  static const defaults allgather{
      "Latency of an allgather; sizes are of one rank's block.", 1, 1u << 20, {200, 1000}, {10, 100}};
  static const defaults alltoall{
      "Latency of an all-to-all exchange; sizes are of one rank's block for another.",
      1,
      1u << 20,
      {200, 1000},
      {10, 100}};
  switch (what) {
    case kind::latency:
      return latency;
    case kind::bandwidth:
      return bandwidth;
    case kind::allreduce:
      return allreduce;
    case kind::barrier:
      return barrier;
    case kind::broadcast:
      return broadcast;
    case kind::reduce:
      return reduce;
    case kind::gather:
      return gather;
    case kind::scatter:
      return scatter;
    case kind::allgather:
      return allgather;
    case kind::alltoall:
      break;
  }
  return alltoall;
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

void parse_range(std::string_view text, options& into) {
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

std::optional<int> parse(int argc, char** argv, options& into) {
  const defaults& by_kind = defaults_of(into.what);
  into.min_size = by_kind.min_size;
  into.max_size = by_kind.max_size;
  std::string range;
  CLI::App app{by_kind.text, into.program};
  if (into.what != kind::barrier)
    app.add_option("-m", range, "smallest and largest message in bytes: MIN:MAX or MAX; k, m, g as suffix")
        ->type_name("MIN:MAX");
  app.add_option("-i", into.iterations, "timed repetitions of each size")->check(CLI::Range(1, 1 << 30));
  app.add_option("-x", into.warmup, "untimed repetitions before them")->check(CLI::Range(0, 1 << 30));
  if (into.what == kind::bandwidth)
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
  if (with.iterations) result.timed = *with.iterations;
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
