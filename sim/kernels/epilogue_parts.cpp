#include "sim/kernels/epilogue_parts.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace fuseline {

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
