#include "model/primitives/parts.h"

#include <algorithm>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline {

std::int64_t EpilogueParts::begin(int part) const {
  std::int64_t begin = 0;
  for (; part >= 0; part = parts[static_cast<std::size_t>(part)].parent)
    begin += parts[static_cast<std::size_t>(part)].begin;
  return begin;
}

std::int64_t EpilogueParts::cols(int part) const {
  return part < 0 ? whole : parts[static_cast<std::size_t>(part)].cols;
}

int each_of(std::int64_t cols, std::int64_t part_cols) {
  for (const int each : {1, 2, 4})
    if (cols * 2 == part_cols * each) return each;
  FUSELINE_ASSERT(false, "values are half, once or twice as wide as the accumulator");
}

EpilogueParts parts_of(const Program& program) {
  EpilogueParts result;
  std::map<Value, int> part_of;
  const auto part = [&](Value v) {
    const auto it = part_of.find(v);
    return it == part_of.end() ? -1 : it->second;
  };
  const auto joined = [&](const std::vector<Value>& in) {
    int home = -1;
    for (const Value v : in) home = std::max(home, part(v));
    return home;
  };
  if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop)) result.whole = gemm->N;
  result.home.assign(program.body.size(), -1);
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    const Primitive& primitive = program.body[i];
    const std::vector<Value> uses = primitive.uses();
    if (uses.empty()) continue;
    if (const auto slice = primitive.demands().slice) {
      result.parts.push_back(
          {part(slice->of), slice->begin, slice->cols, fmt::format("part{}", result.parts.size())});
      result.home[i] = static_cast<int>(result.parts.size()) - 1;
    } else {
      result.home[i] = joined(uses);
    }
    for (const Value v : primitive.defines()) part_of[v] = result.home[i];
  }
  return result;
}

}  // namespace fuseline
