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
    if (const auto* p = std::get_if<Columns>(&primitive)) {
      result.parts.push_back(
          {part(p->in), p->begin, p->cols, fmt::format("part{}", result.parts.size())});
      result.home[i] = part_of[p->out] = static_cast<int>(result.parts.size()) - 1;
    } else if (const auto* m = std::get_if<Map>(&primitive)) {
      result.home[i] = part_of[m->out] = joined(m->in);
    } else if (const auto* pm = std::get_if<PairMap>(&primitive)) {
      result.home[i] = joined(pm->in);
      for (const Value v : pm->out) part_of[v] = result.home[i];
    } else if (const auto* t = std::get_if<TileReduce>(&primitive)) {
      result.home[i] = part(t->in);
    } else if (const auto* s = std::get_if<StoreTile>(&primitive)) {
      result.home[i] = part(s->in);
    } else if (const auto* v = std::get_if<StoreVector>(&primitive)) {
      result.home[i] = part(v->in);
    } else if (const auto* o = std::get_if<OnlineLogSumExp>(&primitive)) {
      result.home[i] = part(o->in);
    }
  }
  return result;
}

}  // namespace fuseline
