#include "launcher/environment.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace verbena::launcher;

TEST_CASE("what an outer job left is taken out, and nothing else") {
  const char* const inherited[] = {"PATH=/bin",
                                   "VERBENA_RANK=3",
                                   "VERBENA_SEGMENT=5:6:x",
                                   "PMIX_RANK=1",
                                   "PMIX_NAMESPACE=n",
                                   "PMIX_MCA_gds=ds21",
                                   "PMIX_MCA_psec=munge",
                                   "PMIX_MCA_ptl_base_verbose=1",
                                   "PMI_SIZE=4",
                                   "OMPI_COMM_WORLD_RANK=1",
                                   "VERBENA_FABRIC=shm",
                                   "HOME=/h",
                                   "EMPTY=",
                                   nullptr};
  CHECK(without_outer_job(inherited) ==
        environment{"PATH=/bin", "PMIX_MCA_ptl_base_verbose=1", "VERBENA_FABRIC=shm", "HOME=/h", "EMPTY="});
}

TEST_CASE("requests set, replace, remove and pass on") {
  environment e{"A=1", "AB=2"};
  CHECK(apply_request(e, "A=x=y").empty());
  CHECK(apply_request(e, "NEW=").empty());
  CHECK(apply_request(e, "AB").empty());
  CHECK(e == environment{"A=x=y", "AB=2", "NEW="});
  CHECK(apply_request(e, "AB-").empty());
  CHECK(apply_request(e, "NOT_THERE-").empty());
  CHECK(e == environment{"A=x=y", "NEW="});
  CHECK(find_variable(e, "A") == std::string{"x=y"});
  CHECK(find_variable(e, "AB") == nullptr);
}

TEST_CASE("requests that make no sense are refused") {
  environment e{"A=1"};
  CHECK_FALSE(apply_request(e, "").empty());
  CHECK_FALSE(apply_request(e, "=x").empty());
  CHECK_FALSE(apply_request(e, "MISSING").empty());
  CHECK_FALSE(apply_request(e, "VERBENA_RANK=2").empty());
  CHECK(e == environment{"A=1"});
}

TEST_CASE("a setting that is misspelt is told, what merely looks alike is not") {
  CHECK(misspelt_settings({"VERBENA_ALREDUCE=ring", "VERBENA_ALLREDUCE=ring", "VERBENA_RANK=1", "VERBENA_MY_OWN=2",
                           "VERBENAFABRIC=shm", "HOME=/h"}) ==
        std::vector<std::string>{
            "the variable VERBENA_ALREDUCE is no setting and does nothing; is VERBENA_ALLREDUCE meant?",
            "the variable VERBENAFABRIC is no setting and does nothing; is VERBENA_FABRIC meant?"});
}
