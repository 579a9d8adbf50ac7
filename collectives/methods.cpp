// The table of methods: what each is called, and the function that makes its schedule.
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/choose.hpp"

#include <array>

namespace verbena::collectives {
namespace {

struct row {
  std::string_view name;
  algorithm of;
};

// In the order of `method`.
constexpr std::array<row, methods> rows = {{
    {"recursive_doubling", allreduce_recursive_doubling},
    {"ring", allreduce_ring},
    {"node (exchange)", allreduce_node_exchange},
    {"node (slices)", allreduce_node_slices},
    {"node (gathered slices)", allreduce_node_gathered_slices},
    {"node (gathering)", allreduce_node_gathering},
    {"dissemination", barrier_dissemination},
    {"node (exchange)", barrier_node_exchange},
    {"node (gathering)", barrier_node_gathering},
    {"binomial", broadcast_binomial},
    {"scatter_ring", broadcast_scatter_ring},
    {"node", broadcast_node},
    {"node (gathering)", broadcast_node_gathering},
    {"binomial", reduce_binomial},
    {"scatter_gather", reduce_scatter_gather},
    {"node", reduce_node},
    {"node (slices)", reduce_node_slices},
    {"node (gathered slices)", reduce_node_gathered_slices},
    {"node (gathering)", reduce_node_gathering},
    {"binomial", gather_binomial},
    {"linear", gather_linear},
    {"node", gather_node},
    {"node (gathering)", gather_node_gathering},
    {"binomial", scatter_binomial},
    {"linear", scatter_linear},
    {"node", scatter_node},
    {"node (gathering)", scatter_node_gathering},
    {"bruck", allgather_bruck},
    {"ring", allgather_ring},
    {"node", allgather_node},
    {"node (gathering)", allgather_node_gathering},
    {"bruck", alltoall_bruck},
    {"pairwise", alltoall_pairwise},
    {"pairwise (exchange)", alltoall_exchange},
    {"node", alltoall_node},
    {"node (gathering)", alltoall_node_gathering},
}};

}  // namespace

std::string_view name(method m) noexcept {
  return rows[static_cast<std::size_t>(m)].name;
}

algorithm algorithm_of(method m) noexcept {
  return rows[static_cast<std::size_t>(m)].of;
}

}  // namespace verbena::collectives
