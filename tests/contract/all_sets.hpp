// The fabrics the contract suite holds to the contract. A new fabric: a fixture like these, named here.
#pragma once

#include "self_set.hpp"
#include "shm_set.hpp"
#include "sim_set.hpp"
#include "tcp_set.hpp"

#include <tuple>

namespace verbena::contract {

using all_sets = std::tuple<self_set, sim_set<calm_world>, sim_set<rough_world>, sim_set<streaming_world>,
                            sim_set<tiny_world>, sim_set<lossy_world>, shm_set<true>, shm_set<false>,
                            tcp_set<false>, tcp_set<true>, breaking_tcp_set>;

}  // namespace verbena::contract
