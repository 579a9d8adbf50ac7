#include "collectives/checker_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace verbena::collectives::checking {

void join(clock& into, const clock& other) {
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

value expressions::add(const facts& f) {
  all_.push_back(f);
  return static_cast<value>(all_.size() - 1);
}

value expressions::leaf(int rank, std::uint32_t chunk, std::uint32_t turn) {
  value& at = leaves_[{rank, chunk, turn}];
  if (at == 0) at = add({chunk, turn, std::uint64_t{1} << rank, rank, rank, true});
  return at;
}

value expressions::combine(value left, value right) {
  if (left == 0 || right == 0) throw fault{"a reduction reads what was never written"};
  value& at = sums_[{left, right}];
  if (at != 0) return at;
  const facts a = about(left);
  const facts b = about(right);
  if (a.turn != b.turn) throw fault{"a reduction mixes two repetitions"};
  if (a.chunk != b.chunk) throw fault{fmt::format("a reduction mixes chunks {} and {}", a.chunk, b.chunk)};
  if ((a.operands & b.operands) != 0)
    throw fault{
        fmt::format("the operand of rank {} enters twice", std::countr_zero(a.operands & b.operands))};
  return at = add({a.chunk, a.turn, a.operands | b.operands, std::min(a.lowest, b.lowest),
                   std::max(a.highest, b.highest), a.rank_order && b.rank_order && a.highest < b.lowest});
}

void memory::ordered(const std::map<int, std::uint32_t>& before, const cell_key& key, int rank,
                     const clock& now, const char* what) {
  for (const auto& [other, when] : before)
    if (other != rank && now[static_cast<std::size_t>(other)] < when)
      throw fault{fmt::format("rank {} {} rank {} may still touch it: {}", rank, what, other, name(key))};
}

value memory::read(const cell_key& key, int rank, const clock& now) {
  cell& c = cells_[key];
  ordered(c.writes, key, rank, now, "reads while");
  c.reads[rank] = now[static_cast<std::size_t>(rank)];
  return c.content;
}

void memory::write(const cell_key& key, int rank, const clock& now, value what) {
  cell& c = cells_[key];
  ordered(c.writes, key, rank, now, "writes while");
  ordered(c.reads, key, rank, now, "writes while");
  c.writes[rank] = now[static_cast<std::size_t>(rank)];
  c.content = what;
}

value memory::look(const cell_key& key) const {
  const auto found = cells_.find(key);
  return found == cells_.end() ? 0 : found->second.content;
}

std::string name(const cell_key& key) {
  const char* places[] = {"nowhere", "input", "output", "scratch", "node scratch"};
  return fmt::format("{} of rank {}, cell {}", places[static_cast<int>(key.where)], key.owner, key.at);
}

}  // namespace verbena::collectives::checking
