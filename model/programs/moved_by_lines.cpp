#include "model/programs/moved_by_lines.h"

#include <algorithm>

#include "model/program.h"

namespace fuseline {

std::vector<MovedByLine> moved_by_lines(const Program& p, const ProgramPlaces& places) {
  std::vector<MovedByLine> all;
  std::vector<Operand> loaded, stored;
  const auto primitives = [&](const std::vector<Primitive>& list, const std::vector<Position>& at) {
    for (std::size_t i = 0; i < list.size() && i < at.size(); ++i)
      for (const Access& a : list[i].accesses()) {
        all.push_back({a.operand, a.reach, a.store, at[i], a.part});
        (a.store ? stored : loaded).push_back(a.moved());
      }
  };
  primitives(p.prologue, places.prologue);
  primitives(p.body, places.body);
  // What no primitive moves, the mainloop does: panels, which many tiles read.
  const auto mainloop = [&](const std::vector<Operand>& list, bool store) {
    std::vector<Operand> left = store ? stored : loaded;
    for (const Operand& o : list) {
      const auto known = std::ranges::find(left, o);
      if (known != left.end())
        left.erase(known);
      else
        all.push_back({o, Reach::all_numbers, store, places.mainloop});
    }
  };
  mainloop(loads(p), false);
  mainloop(stores(p), true);
  return all;
}

}  // namespace fuseline
