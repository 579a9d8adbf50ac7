// Owners of what libibverbs hands out: each object goes with its owner, in the order members are declared, which is the
// order libibverbs demands. It must not know what the objects are for.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace verbena::transport::verbs {

template <auto Destroy>
struct destroyer {
  template <class Object>
  void operator()(Object* object) const noexcept {
    Destroy(object);  // what it returns tells of objects that still depend on this one: a fault of ours
  }
};

using device_handle = std::unique_ptr<ibv_context, destroyer<&ibv_close_device>>;
using domain_handle = std::unique_ptr<ibv_pd, destroyer<&ibv_dealloc_pd>>;
using channel_handle = std::unique_ptr<ibv_comp_channel, destroyer<&ibv_destroy_comp_channel>>;
using completion_queue_handle = std::unique_ptr<ibv_cq, destroyer<&ibv_destroy_cq>>;
using receive_queue_handle = std::unique_ptr<ibv_srq, destroyer<&ibv_destroy_srq>>;
using queue_pair_handle = std::unique_ptr<ibv_qp, destroyer<&ibv_destroy_qp>>;
using address_handle = std::unique_ptr<ibv_ah, destroyer<&ibv_destroy_ah>>;
using memory_handle = std::unique_ptr<ibv_mr, destroyer<&ibv_dereg_mr>>;

}  // namespace verbena::transport::verbs
