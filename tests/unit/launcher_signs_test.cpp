#include "runtime/bootstrap/launcher_signs.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using namespace verbena::runtime;

namespace {

variable_lookup environment_of(std::map<std::string, std::string> variables) {
  return [kept = std::move(variables)](const char* name) {
    const auto at = kept.find(name);
    return at == kept.end() ? nullptr : at->second.c_str();
  };
}

}  // namespace

TEST_CASE("a process that nobody launched is a job of one") {
  CHECK(refusal_without_server(environment_of({})).empty());
  CHECK_FALSE(has_pmix_server(environment_of({})));
}

TEST_CASE("an allocation alone, as in a batch script, does not refuse") {
  CHECK(refusal_without_server(
            environment_of({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}))
            .empty());
  CHECK(
      refusal_without_server(environment_of({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})).empty());
  CHECK(refusal_without_server(environment_of({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}})).empty());
}

TEST_CASE("a step of several tasks without PMIx refuses and names what it saw and the cure") {
  const std::string slurm =
      refusal_without_server(environment_of({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}}));
  CHECK(slurm.find("Slurm started 4 tasks but offers no PMIx server (SLURM_PROCID=2") == 0);
  CHECK(slurm.find("srun --mpi=pmix") != std::string::npos);
  CHECK(slurm.find("VERBENA_SINGLETON=1") != std::string::npos);
  CHECK(refusal_without_server(environment_of({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}}))
            .find("SLURM_STEP_NUM_TASKS=4") != std::string::npos);
  CHECK(refusal_without_server(environment_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}})).find("PMI_SIZE=2") !=
        std::string::npos);
  CHECK(refusal_without_server(environment_of({{"OMPI_COMM_WORLD_SIZE", "3"}})).find("Open MPI") == 0);
}

TEST_CASE("a server needs namespace, rank and address") {
  CHECK(has_pmix_server(
      environment_of({{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "0"}, {"PMIX_SERVER_URI41", "x"}})));
  CHECK_FALSE(has_pmix_server(environment_of({{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "0"}})));
  CHECK_FALSE(has_pmix_server(environment_of({{"PMIX_MCA_gds", "hash"}})));
}

TEST_CASE("the launcher is named") {
  CHECK(name_of_launcher(environment_of({{"VERBENA_SEGMENT", "1:2:x"}, {"SLURM_STEP_ID", "0"}})) ==
        "rdmarun");
  CHECK(name_of_launcher(environment_of({{"SLURM_STEP_ID", "0"}})) == "slurm");
  CHECK(name_of_launcher(environment_of({})) == "a PMIx server");
}
