// Behind verbena::memory(): the rank's part of the node's segment, as a memory resource.
#pragma once

#include "runtime/gate.hpp"
#include "transport/routed_fabric.hpp"

#include <memory_resource>

namespace verbena::runtime {

class node_memory final : public std::pmr::memory_resource {
 public:
  node_memory(transport::routed_fabric& fabric, gate& doors) noexcept : fabric_(fabric), doors_(doors) {}

 private:
  void* find_room(std::size_t bytes, std::size_t alignment);
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  transport::routed_fabric& fabric_;
  gate& doors_;
};

}  // namespace verbena::runtime
