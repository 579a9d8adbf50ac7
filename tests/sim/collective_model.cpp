#include "tests/sim/collective_model.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::sim_tests {

std::size_t collective_model::in_bytes(std::int32_t me) const noexcept {
  switch (what_.what) {
    case call::reduce:
    case call::allreduce:
      return what_.count * sizeof(std::uint64_t);
    case call::gather:
    case call::allgather:
      return what_.count;
    case call::scatter:
      return is_root(me) ? what_.count * ranks_ : 0;
    case call::alltoall:
      return what_.count * ranks_;
    default:
      return 0;
  }
}

std::size_t collective_model::out_bytes(std::int32_t me) const noexcept {
  switch (what_.what) {
    case call::broadcast:
    case call::scatter:
      return what_.count;
    case call::reduce:
      return is_root(me) ? what_.count * sizeof(std::uint64_t) : 0;
    case call::allreduce:
      return what_.count * sizeof(std::uint64_t);
    case call::gather:
      return is_root(me) ? what_.count * ranks_ : 0;
    case call::allgather:
    case call::alltoall:
      return what_.count * ranks_;
    default:
      return 0;
  }
}

std::vector<std::byte> collective_model::input(std::int32_t me) const {
  std::vector<std::byte> bytes(what_.what == call::broadcast && is_root(me) ? what_.count : in_bytes(me));
  if (what_.what == call::reduce || what_.what == call::allreduce) {
    for (std::size_t i = 0; i < what_.count; ++i) {
      const std::uint64_t value = element(me, i);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
  } else {
    const std::uint64_t mine = element(me, 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(mine, i);
  }
  return bytes;
}

std::uint64_t collective_model::chain(std::uint64_t left, std::uint64_t right) noexcept {
  const auto a = static_cast<std::uint32_t>(left >> 32), b = static_cast<std::uint32_t>(left);
  const auto c = static_cast<std::uint32_t>(right >> 32), d = static_cast<std::uint32_t>(right);
  return std::uint64_t{a * c} << 32 | static_cast<std::uint32_t>(a * d + b);
}

std::uint64_t collective_model::reduced(std::size_t index) const noexcept {
  std::uint64_t so_far = element(0, index);
  for (std::int32_t r = 1; r < static_cast<std::int32_t>(ranks_); ++r) {
    const std::uint64_t next = element(r, index);
    if (what_.custom)
      so_far = chain(so_far, next);
    else if (what_.how == reduction::sum)
      so_far += next;
    else if (what_.how == reduction::product)
      so_far *= next;
    else if (what_.how == reduction::max)
      so_far = std::max(so_far, next);
    else
      so_far ^= next;
  }
  return so_far;
}

std::vector<std::byte> collective_model::output(std::int32_t me) const {
  const std::size_t block = what_.count;
  std::vector<std::byte> bytes(out_bytes(me));
  // Block `at` of the output is block `which` of what rank `of` brought.
  const auto copy = [&](std::size_t at, std::int32_t of, std::size_t which) {
    const std::uint64_t theirs = element(of, 0);
    for (std::size_t i = 0; i < block; ++i) bytes[at * block + i] = byte_of(theirs, which * block + i);
  };
  if (bytes.empty()) return bytes;
  switch (what_.what) {
    case call::broadcast:
      copy(0, what_.root, 0);
      break;
    case call::scatter:
      copy(0, what_.root, static_cast<std::size_t>(me));
      break;
    case call::gather:
    case call::allgather:
      for (std::size_t r = 0; r < ranks_; ++r) copy(r, static_cast<std::int32_t>(r), 0);
      break;
    case call::alltoall:
      for (std::size_t r = 0; r < ranks_; ++r)
        copy(r, static_cast<std::int32_t>(r), static_cast<std::size_t>(me));
      break;
    default:
      for (std::size_t i = 0; i < block; ++i) {
        const std::uint64_t value = reduced(i);
        std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
      }
  }
  return bytes;
}

}  // namespace verbena::sim_tests
