#include "model/primitives/parts.h"

#include <algorithm>
#include <map>
#include <set>
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

namespace {

// What is computed from loads alone has the columns of what it is for: where all that use it work
// on one part, it belongs there.
void follow_users(const std::vector<Primitive>& body, std::vector<int>& home) {
  std::set<Value> loaded;
  for (const Primitive& p : body) {
    const std::vector<Value> uses = p.uses();
    if (std::ranges::all_of(uses, [&](Value v) { return loaded.contains(v); }))
      for (const Value v : p.defines()) loaded.insert(v);
  }
  for (std::size_t i = body.size(); i-- > 0;) {
    const std::vector<Value> made = body[i].defines();
    if (made.empty() || body[i].uses().empty() || !loaded.contains(made.front())) continue;
    std::set<int> homes;
    for (std::size_t j = i + 1; j < body.size(); ++j)
      for (const Value v : body[j].uses())
        if (std::ranges::count(made, v) != 0) homes.insert(home[j]);
    if (homes.size() == 1) home[i] = *homes.begin();
  }
}

}  // namespace

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
  follow_users(program.body, result.home);
  return result;
}

}  // namespace fuseline
