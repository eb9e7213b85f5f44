#include "cuda/emit/gathered_groups.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/widths.h"
#include "model/primitives/parts.h"
#include "model/primitives/values.h"
#include "sim/kernels/epilogue_needs.h"

namespace fuseline::cuda {

namespace {

// Columns that a warp has of its rows: on Ampere all, on Hopper a part of them.
constexpr std::int64_t kWarpCols = 128;

bool defines_one_of(const Primitive& p, const std::set<Value>& values) {
  return std::ranges::any_of(p.defines(), [&](Value v) { return values.contains(v); });
}

// The pass ahead has the accumulator, what is known of each row, and tables. It has no other loads
// by columns, which the copy engine brings for the epilogue alone.
bool made_of_rows(const Program& program, Value v) {
  const std::set<Value> needed = needed_for(program, v);
  return std::ranges::all_of(program.body, [&](const Primitive& p) {
    return !defines_one_of(p, needed) ||
           (!p.is<GroupReduce>() && std::ranges::all_of(p.accesses(), [](const Access& a) {
             return a.reach == Reach::row_numbers || a.reach == Reach::table;
           }));
  });
}

}  // namespace

std::set<Value> needed_for(const Program& program, Value v) {
  std::set<Value> needed{v};
  for (auto p = program.body.rbegin(); p != program.body.rend(); ++p)
    if (defines_one_of(*p, needed)) {
      const std::vector<Value> from = p->uses();
      needed.insert(from.begin(), from.end());
    }
  return needed;
}

std::string groups_not_built(const Program& program, std::size_t index) {
  const auto* heads = program.body[index].as<GroupReduce>();
  FUSELINE_ASSERT(heads != nullptr, program.name);
  const std::int64_t group = heads->group;
  const std::string what =
      fmt::format("a product whose epilogue sums over heads of {} columns", group);
  const EpilogueParts parts = parts_of(program);
  const int home = parts.home[index];
  if (group % kColsOfGroup != 0) return what;
  if (parts.begin(home) % group != 0)
    return fmt::format("{}, from column {} on", what, parts.begin(home));
  const std::int64_t slab = kColsOfGroup * epilogue_needs(program).slab_groups;
  if (slab % group == 0) return "";
  if (group % slab != 0 || kWarpCols % group != 0)
    return fmt::format("{}, while a warp has {}", what, kWarpCols);
  if (each_of(analyse(program).width(heads->in), parts.cols(home)) != 2)
    return what + " of paired values";
  if (!made_of_rows(program, heads->in)) return what + " of more than the product and its rows";
  return "";
}

}  // namespace fuseline::cuda
