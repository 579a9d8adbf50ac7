#include "runtime/bootstrap/launcher_signs.hpp"

#include "base/number.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace verbena::runtime {
namespace {

/// The variables by which one kind of launcher tells a task its place.
struct launcher_kind {
  const char* name;
  const char* rank;
  const char* size;       ///< of the running step, never of an allocation
  const char* told_size;  ///< for the sentence only: may be an allocation's
  const char* cure;
};

constexpr std::initializer_list<launcher_kind> kinds = {
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "'srun --mpi=pmix' or 'rdmarun'"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, "'rdmarun'"},
    {"a PMI launcher", "PMI_RANK", "PMI_SIZE", nullptr, "'rdmarun'"},
};

long number(const variable_lookup& lookup, const char* variable) {
  const char* text = variable != nullptr ? lookup(variable) : nullptr;
  if (text == nullptr) return -1;
  long value = -1;
  base::parse_number(text, value);
  return value;
}

}  // namespace

bool has_pmix_server(const variable_lookup& lookup) {
  if (lookup("PMIX_NAMESPACE") == nullptr || lookup("PMIX_RANK") == nullptr) return false;
  for (const char* uri : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
                          "PMIX_SERVER_URI2", "PMIX_SERVER_URI"})
    if (lookup(uri) != nullptr) return true;
  return false;
}

std::string name_of_launcher(const variable_lookup& lookup) {
  if (lookup("VERBENA_SEGMENT") != nullptr) return "rdmarun";
  if (lookup("SLURM_STEP_ID") != nullptr) return "slurm";
  return "a PMIx server";
}

std::string refusal_without_server(const variable_lookup& lookup) {
  for (const launcher_kind& kind : kinds) {
    const long rank = number(lookup, kind.rank);
    const long size = number(lookup, kind.size);
    if (rank <= 0 && size <= 1) continue;
    const long told = size > 0 ? size : number(lookup, kind.told_size);
    const std::string seen =
        size > 1 ? fmt::format("{}={}", kind.size, size) : fmt::format("{}={}", kind.rank, rank);
    return fmt::format(
        "{} started {} but offers no PMIx server ({} is set): use {}; VERBENA_SINGLETON=1 runs this process "
        "as a job "
        "of one",
        kind.name, told > 1 ? fmt::format("{} tasks", told) : std::string{"several tasks"}, seen, kind.cure);
  }
  return {};
}

}  // namespace verbena::runtime
