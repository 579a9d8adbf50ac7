#include "collectives/reduce_kernels.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace verbena;
using namespace verbena::collectives;

namespace {

std::vector<instruction_set> available() {
  std::vector<instruction_set> all{instruction_set::baseline};
  if (best_instruction_set() >= instruction_set::avx2) all.push_back(instruction_set::avx2);
  if (best_instruction_set() >= instruction_set::avx512) all.push_back(instruction_set::avx512);
  return all;
}

constexpr reduction all_operators[] = {reduction::sum,         reduction::product,     reduction::min,
                                       reduction::max,         reduction::logical_and, reduction::logical_or,
                                       reduction::logical_xor, reduction::bit_and,     reduction::bit_or,
                                       reduction::bit_xor};

/// One element the slow way, modulo 2^64, or by the definition for floating point.
template <class Type>
Type model(Type a, Type b, reduction how) {
  if constexpr (std::is_floating_point_v<Type>) {
    if (how == reduction::sum) return a + b;
    if (how == reduction::product) return a * b;
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    return how == reduction::min ? (a < b ? a : b) : (a > b ? a : b);
  } else {
    if (how == reduction::min) return std::min(a, b);
    if (how == reduction::max) return std::max(a, b);
    if (how == reduction::logical_and) return static_cast<Type>(a != 0 && b != 0);
    if (how == reduction::logical_or) return static_cast<Type>(a != 0 || b != 0);
    if (how == reduction::logical_xor) return static_cast<Type>((a != 0) != (b != 0));
    if (how == reduction::bit_and) return static_cast<Type>(a & b);
    if (how == reduction::bit_or) return static_cast<Type>(a | b);
    if (how == reduction::bit_xor) return static_cast<Type>(a ^ b);
    // Arithmetic modulo 2^64, cut to size, is arithmetic modulo 2^width.
    const auto wide_a = static_cast<std::uint64_t>(a);
    const auto wide_b = static_cast<std::uint64_t>(b);
    return static_cast<Type>(how == reduction::sum ? wide_a + wide_b : wide_a * wide_b);
  }
}

template <class Type>
std::vector<Type> operands(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Type> all(count);
  for (Type& one : all) {
    if constexpr (std::is_floating_point_v<Type>) {
      one = static_cast<Type>(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -60));
      if (random() % 17 == 0) one = std::numeric_limits<Type>::quiet_NaN();
      if (random() % 17 == 0) one = -std::numeric_limits<Type>::infinity();
    } else {
      one = static_cast<Type>(random());
      if (random() % 5 == 0) one = std::numeric_limits<Type>::max();
      if (random() % 5 == 0) one = std::numeric_limits<Type>::min();
      if (random() % 4 == 0) one = 0;
    }
  }
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("kernels equal the definition in every instruction set", "[collectives][kernels]",
                   std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                   std::int64_t, std::uint64_t, float, double) {
  using type = TestType;
  for (instruction_set set : available())
    for (reduction how : all_operators)
      for (std::size_t count : {0U, 1U, 2U, 7U, 8U, 31U, 64U, 65U, 131U})
        for (std::size_t offset : {0U, 1U, 3U})
          for (int alias = 0; alias < 3; ++alias) {
            if (std::is_floating_point_v<type> && how > reduction::max) continue;
            std::vector<type> left = operands<type>(count + offset, 1);
            std::vector<type> right = operands<type>(count + offset, 2);
            std::vector<type> expected;
            for (std::size_t i = offset; i < count + offset; ++i)
              expected.push_back(model(left[i], right[i], how));
            std::vector<type> apart(count + offset + 1, type{77});
            type* to = alias == 0 ? apart.data() : alias == 1 ? left.data() : right.data();
            find_kernel(element_of<type>(), how, set)(to + offset, left.data() + offset,
                                                      right.data() + offset, count);
            bool right_everywhere = true;
            for (std::size_t i = 0; i < count; ++i) {
              const type got = to[offset + i];
              const bool both_nan = got != got && expected[i] != expected[i];
              right_everywhere &= both_nan || std::memcmp(&got, &expected[i], sizeof got) == 0;
            }
            INFO("set " << static_cast<int>(set) << ", reduction " << static_cast<int>(how) << ", count "
                        << count);
            CHECK(right_everywhere);
            if (alias == 0) CHECK(apart[count + offset] == type{77});
          }
}

TEST_CASE("NaN is taken from either side of min and max", "[collectives][kernels]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (instruction_set set : available())
    for (reduction how : {reduction::min, reduction::max}) {
      const double left[] = {nan, 1, nan, 1, nan, 1, nan, 1, nan};
      const double right[] = {1, nan, nan, nan, 1, nan, nan, nan, 1};
      double to[9] = {};
      find_kernel(element::f64, how, set)(to, left, right, 9);
      for (double one : to) CHECK(std::isnan(one));
    }
}

TEST_CASE("element sizes follow the types", "[collectives][kernels]") {
  CHECK(element_bytes(element_of<std::int8_t>()) == 1);
  CHECK(element_bytes(element_of<unsigned short>()) == 2);
  CHECK(element_bytes(element_of<float>()) == 4);
  CHECK(element_bytes(element_of<long long>()) == 8);
  CHECK(element_bytes(element_of<double>()) == 8);
  CHECK_FALSE(is_element(static_cast<element>(17)));
  CHECK_FALSE(is_reduction(static_cast<reduction>(12)));
}

TEST_CASE("the least or greatest value comes with its place, the lowest of several",
          "[collectives][kernels]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using pair = located<double>;
  for (instruction_set set : available()) {
    const auto reduce = [&](reduction how, pair left, pair right) {
      pair to{};
      find_kernel(element::located_f64, how, set)(&to, &left, &right, 1);
      return to;
    };
    const auto both = [&](pair a, pair b, std::int64_t least, std::int64_t greatest) {
      CHECK(reduce(reduction::min_location, a, b).index == least);
      CHECK(reduce(reduction::min_location, b, a).index == least);
      CHECK(reduce(reduction::max_location, a, b).index == greatest);
      CHECK(reduce(reduction::max_location, b, a).index == greatest);
    };
    both({1, 5}, {2, 3}, 5, 3);
    both({1, 5}, {1, 3}, 3, 3);
    both({-0.0, 5}, {0.0, 3}, 3, 3);
    both({nan, 5}, {1, 3}, 5, 5);
    both({nan, 5}, {nan, 3}, 3, 3);
    both({-1, 5}, {std::numeric_limits<double>::infinity(), 6}, 5, 6);
  }
  located<std::int32_t> left[] = {{7, 1}, {3, 9}}, right[] = {{8, 2}, {3, 4}};
  find_kernel(element::located_i32, reduction::max_location, instruction_set::baseline)(left, left, right, 2);
  CHECK(left[0] == located<std::int32_t>{8, 2});
  CHECK(left[1] == located<std::int32_t>{3, 4});
}

TEST_CASE("complex numbers and bool", "[collectives][kernels]") {
  using number = std::complex<double>;
  for (instruction_set set : available()) {
    const number a[] = {{1, 2}, {0.5, -3}}, b[] = {{3, -1}, {2, 2}};
    number to[2];
    find_kernel(element::c128, reduction::sum, set)(to, a, b, 2);
    CHECK(to[0] == number{4, 1});
    find_kernel(element::c128, reduction::product, set)(to, a, b, 2);
    CHECK(to[0] == number{5, 5});
    CHECK(to[1] == number{7, -5});
    const bool left[] = {false, false, true, true}, right[] = {false, true, false, true};
    bool got[4];
    find_kernel(element::boolean, reduction::logical_xor, set)(got, left, right, 4);
    CHECK((!got[0] && got[1] && got[2] && !got[3]));
    find_kernel(element::boolean, reduction::logical_and, set)(got, left, right, 4);
    CHECK((!got[0] && !got[1] && !got[2] && got[3]));
  }
}

TEST_CASE("operators that make no sense for an element are not there", "[collectives][kernels]") {
  const auto exists = [](element type, reduction how) {
    return find_kernel(type, how, instruction_set::baseline) != nullptr;
  };
  CHECK_FALSE(exists(element::f64, reduction::bit_and));
  CHECK_FALSE(exists(element::f32, reduction::logical_or));
  CHECK_FALSE(exists(element::c64, reduction::max));
  CHECK_FALSE(exists(element::boolean, reduction::sum));
  CHECK_FALSE(exists(element::i32, reduction::min_location));
  CHECK_FALSE(exists(element::located_f32, reduction::sum));
  CHECK(exists(element::located_f32, reduction::min_location));
  CHECK(element_of<std::byte>() == element::u8);
  CHECK(element_of<located<double>>() == element::located_f64);
  CHECK(name(element::c128) == "c128");
  CHECK(name(reduction::max_location) == "max_location");
}
