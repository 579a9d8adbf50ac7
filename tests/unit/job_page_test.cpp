#include "base/job_page.hpp"

#include "transport/shm/layout.hpp"

#include <sys/stat.h>
#include <catch2/catch.hpp>

using namespace verbena;

TEST_CASE("a created segment opens again with what it was made for", "[job_page]") {
  base::unique_fd fd = base::create_segment({.job_size = 5, .local_ranks = {1, 3, 4}});
  struct stat info {};
  REQUIRE(::fstat(fd.get(), &info) == 0);
  base::mapping map = base::mapping::shared(fd.get(), static_cast<std::size_t>(info.st_size));
  std::string why;
  auto page = base::job_page::open(map, why);
  REQUIRE(page);
  CHECK(page->header().job_size == 5);
  CHECK(std::vector<std::uint32_t>(page->local_ranks().begin(), page->local_ranks().end()) ==
        std::vector<std::uint32_t>{1, 3, 4});
  page->announce(4, base::rank_state::failed, 9);
  CHECK(page->record(4).state.load() == base::rank_state::failed);
  CHECK(page->record(4).outcome == 9);
  CHECK(page->header().news.load() == 1);
  CHECK(page->bell(2).word.load() == 1);
  CHECK(info.st_blocks * 512 <= 8192);  // sparse: only the touched pages exist
}

TEST_CASE("a segment that is none is refused with a sentence", "[job_page]") {
  base::unique_fd fd = base::create_segment({.job_size = 2, .local_ranks = {0, 1}});
  base::mapping map = base::mapping::shared(fd.get(), 1 << 20);
  auto& header = *reinterpret_cast<base::job_page_header*>(map.data());
  std::string why;
  CHECK_FALSE(base::job_page::open(map, why));  // mapped shorter than it says
  CHECK(why == "the sizes in the job page contradict each other");
  header.version = 9;
  CHECK_FALSE(base::job_page::open(map, why));
  CHECK(why == "the launcher writes job page version 9, this library reads version 1");
  header.magic = 0;
  CHECK_FALSE(base::job_page::open(map, why));
  CHECK(why == "the inherited descriptor is no Verbena segment");
}

TEST_CASE("the shm areas follow each other without overlap for 1 to 1024 ranks", "[job_page][shm]") {
  for (std::uint32_t n : {1u, 2u, 3u, 16u, 64u, 65u, 128u, 1024u}) {
    std::vector<std::uint32_t> ranks(n);
    for (std::uint32_t i = 0; i < n; ++i) ranks[i] = i;
    base::unique_fd fd = base::create_segment({.job_size = n, .local_ranks = ranks});
    base::mapping map = base::mapping::shared(fd.get(), 1 << 16 << 8);
    const auto& header = *reinterpret_cast<const base::job_page_header*>(map.data());
    const auto at = transport::shm::make_layout(n, header.shm_offset, header.segment_bytes);
    CHECK(at.cold_bits >= at.cards + n * 64);
    CHECK(at.pairs >= at.cold_bits + n * at.cold_words * 8);
    CHECK(at.world_block >= at.pairs + std::uint64_t{n} * n * 64);
    CHECK(at.arenas >= at.world_block + at.world_block_bytes);
    CHECK(at.arena_bytes >= 8u << 20);
    CHECK(at.arena(n) <= header.segment_bytes);
    CHECK(at.arenas % 4096 == 0);
  }
}
