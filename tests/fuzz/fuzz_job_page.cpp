// A segment with any bytes in it: `open` refuses it, or everything the page then hands out lies inside it.
// The input patches a page that was made rightly (pairs of position and byte), or is the whole head of one.
#include "base/check.hpp"
#include "base/job_page.hpp"
#include "transport/shm/layout.hpp"
#include "transport/shm/places.hpp"

#include <sys/stat.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace verbena;

constexpr std::size_t looked_at = 64 * 1024;  // bytes of the segment that are mapped

struct good_page {
  base::unique_fd fd;
  base::mapping map;
  std::vector<std::byte> head;

  good_page() {
    fd = base::create_segment({.job_size = 9, .local_ranks = {1, 4, 5, 8}, .rank_span = 1 << 12});
    map = base::mapping::shared(fd.get(), looked_at);
    head.assign(map.data(), map.data() + 4096);
  }
};

void inside(const void* from, std::size_t bytes, const base::mapping& map) {
  const auto* at = static_cast<const std::byte*>(from);
  base::check(at >= map.data() && at <= map.data() + map.size() &&
                  bytes <= static_cast<std::size_t>(map.data() + map.size() - at),
              "the page reaches outside its segment");
}

void walk(const base::job_page& page, const base::mapping& map) {
  const base::job_page_header& header = page.header();
  inside(&header, sizeof header, map);
  const auto ranks = page.local_ranks();
  inside(ranks.data(), ranks.size_bytes(), map);
  for (std::uint32_t i = 0; i < header.local_size; ++i) inside(&page.bell(i), sizeof(base::doorbell), map);
  for (const std::uint32_t rank : ranks) inside(&page.record(rank), sizeof(base::rank_record), map);
  inside(&page.record(header.job_size - 1), sizeof(base::rank_record), map);
  const auto at = transport::shm::make_layout(header.local_size, header.shm_offset, header.segment_bytes);
  if (at.arena_bytes != 0)
    base::check(at.arenas >= header.shm_offset && at.arena(at.local_size) <= header.segment_bytes,
                "an arena reaches outside the segment");
  const auto places = transport::shm::make_places(at);
  if (places.heap_bytes != 0)
    base::check(places.heap + places.heap_bytes <= at.arena_bytes, "a heap reaches outside its arena");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static good_page good;
  if (size == 0) return 0;
  std::memcpy(good.map.data(), good.head.data(), good.head.size());
  if (data[0] % 2 == 0) {
    for (std::size_t i = 1; i + 2 < size; i += 3) {
      const std::size_t at = (data[i] | (static_cast<std::size_t>(data[i + 1]) << 8)) % 1024;
      good.map.data()[at] = static_cast<std::byte>(data[i + 2]);
    }
  } else {
    std::memcpy(good.map.data() + 8, data + 1, std::min<std::size_t>(size - 1, 4088));  // the magic stays
  }
  std::string why;
  if (const auto page = base::job_page::open(good.map, why))
    walk(*page, good.map);
  else
    base::check(!why.empty(), "a page is refused without a word");
  return 0;
}
